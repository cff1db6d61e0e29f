/* SPDX-License-Identifier: Apache-2.0 */
/* call: a request of the REST API that is under way, and how it is answered.
 *
 * Responses that are small are one write. Longer ones are made while the client takes
 * them: what it did not take yet is bounded by EXCHANGE_HIGH_BYTES and a piece. */
#include "server/rest/rest.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static void on_gone(void *user)
{
	struct rest_call *call = user;

	call->exchange = NULL;
	rest_call_free(call);
}

static void on_drained(void *user)
{
	struct rest_call *call = user;

	if (call->drained)
		call->drained(call);
}

struct rest_call *rest_call_new(struct exchange *exchange, size_t size)
{
	struct server *server = exchange_server(exchange);
	struct rest_call *call;

	if (server_refuses(server, exchange))
		return NULL;
	call = calloc(1, size);
	if (!call) {
		exchange_problem(exchange, 503, "memory is out");
		return NULL;
	}
	call->rest = server->rest;
	call->exchange = exchange;
	call->tenant = exchange_tenant(exchange);
	ask_init(&call->ask);
	TAILQ_INSERT_TAIL(&call->rest->calls, call, entry);
	exchange_watch(exchange, &(struct exchange_watch){
					 .gone = on_gone, .drained = on_drained, .user = call});
	return call;
}

void rest_call_free(struct rest_call *call)
{
	if (!call)
		return;
	TAILQ_REMOVE(&call->rest->calls, call, entry);
	/* First of all: a thread may be at work with what is released then. */
	if (call->ran_as)
		rest_abandon(call->rest, call->tenant, call->ran_as, &call->ask, call->run);
	else
		async_abandon(call->run);
	if (call->release)
		call->release(call);
	owned_abandon(call->asking, &call->room);
	report_abandon(call->reporting);
	for (; call->slots > 0; call->slots--)
		tenant_end_run(call->tenant);
	json_stream_free(&call->stream);
	execpy_result_free(call->result);
	ask_free(&call->ask);
	free(call);
}

/* --- what comes -------------------------------------------------------------------- */

static bool is_json(const char *type)
{
	static const char json[] = "application/json";
	size_t length = sizeof json - 1;

	return type && strncasecmp(type, json, length) == 0 &&
	       (!type[length] || type[length] == ';' || type[length] == ' ');
}

bool rest_read(struct rest_call *call, bool optional)
{
	struct span body = exchange_body(call->exchange);
	struct error err = {0};

	if (body.length == 0 && optional)
		body = (struct span){(const uint8_t *)"{}", 2};
	else if (!is_json(exchange_header(call->exchange, "content-type"))) {
		rest_problem(call, 415, "send the body as Content-Type: application/json");
		return false;
	}
	call->ask.document = ask_read(body, &err);
	if (call->ask.document)
		return true;
	rest_problem(call, 400, "%s", err.text);
	return false;
}

struct ask_rules rest_rules(const struct tenant *tenant)
{
	/* Where its key says nothing. */
	static const struct execpy_limits ceilings = {
		.time_ms = REST_TIME_MS_MAX,
		.cpu_ms = REST_TIME_MS_MAX,
		.memory_bytes = REST_MEMORY_BYTES_MAX,
		.processes = REST_PROCESSES_MAX,
		.output_bytes = REST_OUTPUT_BYTES_MAX,
		.disk_bytes = REST_DISK_BYTES_MAX,
	};
	struct ask_rules rules = {.initial = limits_default(), .policies = tenant->policies};

	for (size_t i = 0; i < limit_count; i++)
		*limit_at(&rules.ceilings, &limit_infos[i]) = limit_infos[i].most;
	ask_lower(&rules.ceilings, &ceilings);
	ask_lower(&rules.ceilings, &tenant->ceilings);
	ask_lower(&rules.initial, &tenant->ceilings);
	return rules;
}

bool rest_take_slot(struct rest_call *call)
{
	if (tenant_begin_run(call->tenant)) {
		call->slots++;
		return true;
	}
	exchange_field(call->exchange, "Retry-After", "1");
	rest_problem(call, 429, "you have as many runs as you may: %u", call->tenant->runs_max);
	return false;
}

void rest_count(struct rest *rest, const struct tenant *tenant, const char *kind,
		const struct ask *ask, const struct execpy_result *result)
{
	const struct span code = {(const uint8_t *)ask->request.code, ask->request.code_length};

	if (result->check_only)
		metrics_count_check(&rest->server->metrics, result);
	else
		metrics_count_run(&rest->server->metrics, result);
	audit_run(rest->server, tenant, kind, code, result);
}

void rest_abandon(struct rest *rest, const struct tenant *tenant, const char *kind,
		  const struct ask *ask, struct run *run)
{
	struct execpy_result *result = async_give_up(run);

	if (result)
		rest_count(rest, tenant, kind, ask, result);
	execpy_result_free(result);
}

/* --- what goes --------------------------------------------------------------------- */

unsigned rest_status(int number)
{
	switch (number) {
	case EINVAL:
	case ERANGE:
	case ENAMETOOLONG:
	case EILSEQ: /* of an archive that is none */
		return 400;
	case EPERM:
	case EACCES:
		return 403;
	case ENOENT:
		return 404;
	case EBUSY:
	case EEXIST:
	case ENOTDIR:
	case EISDIR:
	case ENOTEMPTY:
		return 409;
	case EIDRM:
		return 410;
	case E2BIG:
	case EFBIG:
	case ENOSPC:
	case EDQUOT:
		return 413;
	default:
		return 503;
	}
}

void rest_problem(struct rest_call *call, unsigned status, const char *format, ...)
{
	char text[2 * ERROR_TEXT_MAX];
	struct exchange *exchange = call->exchange;
	void (*refuse_as)(struct exchange *, unsigned, const char *) = call->refuse;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	rest_call_free(call);
	if (refuse_as)
		refuse_as(exchange, status, text);
	else
		exchange_problem(exchange, status, "%s", text);
}

void rest_fail(struct rest_call *call, const struct error *why)
{
	rest_problem(call, rest_status(why->number), "%s",
		     why->text[0] ? why->text : "it was not done");
}

void rest_done(struct rest_call *call)
{
	struct exchange *exchange = call->exchange;

	rest_call_free(call);
	exchange_respond(exchange, 204, NULL, NULL);
}

bool rest_pump(struct exchange *exchange, struct json_stream *stream)
{
	autobytes piece = {.ceiling = SIZE_MAX / 4};

	while (exchange_unsent(exchange) < EXCHANGE_HIGH_BYTES) {
		if (!json_stream_next(stream, &piece))
			return true;
		if (piece.failed)
			stream->text.failed = piece.failed;
		exchange_write(exchange, bytes_span(&piece));
		bytes_clear(&piece);
	}
	return false;
}

static void send_more(struct rest_call *call)
{
	struct exchange *exchange = call->exchange;
	bool failed;

	if (!rest_pump(exchange, &call->stream))
		return;
	failed = call->stream.text.failed != 0;
	rest_call_free(call);
	if (failed)
		exchange_break(exchange);
	else
		exchange_end(exchange);
}

bool rest_take_result(struct rest_call *call, struct execpy_result *result, const struct error *why)
{
	call->run = NULL;
	call->result = result;
	if (result)
		rest_count(call->rest, call->tenant, call->ran_as, &call->ask, result);
	else
		rest_fail(call, why);
	return result != NULL;
}

void rest_send_rest(struct rest_call *call)
{
	call->drained = send_more;
	send_more(call);
}

void rest_begin(struct rest_call *call, const struct execpy_request *request,
		const struct async *async)
{
	struct error err = {0};

	call->run = async_begin(call->rest->server->engine, request, async, &err);
	if (!call->run)
		rest_fail(call, &err);
}

void rest_send(struct rest_call *call, unsigned status, const char *media_type)
{
	struct exchange *exchange = call->exchange;
	struct bytes whole;

	if (call->stream.parts.failed || call->stream.text.failed) {
		rest_problem(call, 503, "memory is out");
		return;
	}
	if (json_stream_is_whole(&call->stream)) {
		whole = call->stream.text;
		call->stream.text = (struct bytes){0};
		rest_call_free(call);
		exchange_respond(exchange, status, media_type, &whole);
		return;
	}
	exchange_begin(exchange, status, media_type, -1);
	rest_send_rest(call);
}
