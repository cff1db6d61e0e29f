/* SPDX-License-Identifier: Apache-2.0 */
/* e2b: the API of E2B's code interpreter: its routes, and what is asked of contexts.
 *
 * A client in debug mode speaks it to http://localhost:49999 (docs/compat.md). */
#include "server/compat/e2b.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void e2b_release(struct rest_call *call)
{
	struct e2b_call *e2b = (struct e2b_call *)call;

	if (e2b->awaited)
		TAILQ_REMOVE(&e2b->awaited->waiting, e2b, entry);
	e2b->awaited = NULL;
}

struct e2b_call *e2b_call_new(struct exchange *exchange, size_t size)
{
	struct e2b_call *call = (struct e2b_call *)rest_call_new(exchange, size);

	if (!call)
		return NULL;
	call->call.release = e2b_release;
	if (e2b_state(call->call.rest->server))
		return call;
	rest_problem(&call->call, 503, "memory is out");
	return NULL;
}

void e2b_fail(struct rest_call *call, const struct error *why)
{
	if (why->number == EMFILE)
		rest_problem(call, 429, "%s", why->text);
	else
		rest_fail(call, why);
}

int e2b_take_language(const json_t *object, const char **ret_language, struct error *err)
{
	int r = ask_text(object, "", "language", ret_language, err);

	if (r == 0 && *ret_language && !compat_is_python(*ret_language))
		return refuse(err, EINVAL, "language: \"%.40s\" is not served: this is Python",
			      *ret_language);
	return r;
}

/* --- contexts ------------------------------------------------------------------------ */

static void write_context(const struct e2b_context *context, struct json *json)
{
	emit_begin_object(json);
	emit_key(json, "id");
	emit_string(json, context->id);
	emit_key(json, "language");
	emit_string(json, "python");
	emit_key(json, "cwd");
	emit_string(json, context->cwd);
	emit_end_object(json);
}

static void on_created(struct e2b_call *call, struct e2b_context *context, const struct error *why)
{
	struct json json = json_stream_writer(&call->call.stream);

	if (!context) {
		e2b_fail(&call->call, why);
		return;
	}
	context->told = true;
	write_context(context, &json);
	compat_send(&call->call);
}

static void handle_create(struct exchange *exchange)
{
	struct e2b_call *call = e2b_call_new(exchange, sizeof *call);
	const char *language = NULL, *cwd = NULL;
	struct e2b_context *context;
	struct error err = {0};

	if (!call || !rest_read(&call->call, true))
		return;
	compat_drop_nulls(call->call.ask.document);
	if (e2b_take_language(call->call.ask.document, &language, &err) < 0 ||
	    ask_text(call->call.ask.document, "", "cwd", &cwd, &err) < 0) {
		rest_fail(&call->call, &err);
		return;
	}
	if (cwd && strlen(cwd) > COMPAT_CWD_BYTES_MAX) {
		rest_problem(&call->call, 400, "cwd is longer than %d bytes", COMPAT_CWD_BYTES_MAX);
		return;
	}
	context = e2b_new(exchange_server(exchange)->compat_state, &call->call, cwd, false);
	if (!context) {
		rest_problem(&call->call, 503, "memory is out");
		return;
	}
	call->ready = on_created;
	e2b_await(call, context);
	e2b_begin(context);
}

static void handle_list(struct exchange *exchange)
{
	struct e2b_call *call = e2b_call_new(exchange, sizeof *call);
	struct e2b_context *context;
	struct json json;

	if (!call)
		return;
	json = json_stream_writer(&call->call.stream);
	emit_begin_array(&json);
	TAILQ_FOREACH(context, &exchange_server(exchange)->compat_state->contexts, entry)
	if (context->tenant == call->call.tenant && !context->closing && context->id[0])
		write_context(context, &json);
	emit_end_array(&json);
	compat_send(&call->call);
}

/* The context that a path names; NULL: there is none, which was answered. */
static struct e2b_context *take_context(struct e2b_call *call)
{
	struct exchange *exchange = call->call.exchange;
	const char *id = exchange_parameter(exchange, "id");
	struct e2b_context *context =
		e2b_find(exchange_server(exchange)->compat_state, call->call.tenant, id);

	if (!context)
		rest_problem(&call->call, 404, "there is no context %.60s", id);
	return context;
}

static void on_restarted(struct e2b_call *call, struct e2b_context *context,
			 const struct error *why)
{
	if (context)
		rest_done(&call->call);
	else
		e2b_fail(&call->call, why);
}

static void handle_restart(struct exchange *exchange)
{
	struct e2b_call *call = e2b_call_new(exchange, sizeof *call);
	struct e2b_context *context = call ? take_context(call) : NULL;

	if (!context)
		return;
	call->ready = on_restarted;
	/* Not READY any more when this returns, or gone with its call answered. */
	call->awaited = context;
	TAILQ_INSERT_TAIL(&context->waiting, call, entry);
	e2b_restart(context);
}

static void on_removed(struct e2b_call *call, struct e2b_context *context, const struct error *why)
{
	rest_done(&call->call);
}

static void handle_remove(struct exchange *exchange)
{
	struct e2b_call *call = e2b_call_new(exchange, sizeof *call);
	struct e2b_context *context = call ? take_context(call) : NULL;

	if (!context)
		return;
	call->ready = on_removed;
	call->awaited = context;
	TAILQ_INSERT_TAIL(&context->waiting, call, entry);
	e2b_close(context);
}

static void handle_health(struct exchange *exchange)
{
	struct bytes body = {0};

	bytes_append_text(&body, "\"ok\"");
	exchange_respond(exchange, 200, "application/json", &body);
}

static void end(struct server *server)
{
	struct compat *compat = server->compat_state;

	while (compat && !TAILQ_EMPTY(&compat->contexts))
		e2b_forget(TAILQ_FIRST(&compat->contexts));
	free(compat);
	server->compat_state = NULL;
}

static const struct route routes[] = {
	{"GET", "/health", ROUTE_NO_BODY, 0, true, handle_health},
	{"POST", "/execute", ROUTE_TEXT, REST_CODE_BODY_BYTES, false, e2b_handle_execute},
	{"GET", "/contexts", ROUTE_NO_BODY, 0, false, handle_list},
	{"POST", "/contexts", ROUTE_TEXT, REST_SMALL_BODY_BYTES, false, handle_create},
	{"DELETE", "/contexts/{id}", ROUTE_NO_BODY, 0, false, handle_remove},
	{"POST", "/contexts/{id}/restart", ROUTE_TEXT, REST_SMALL_BODY_BYTES, false,
	 handle_restart},
	{0},
};

const struct server_part e2b_part = {.name = "e2b", .compat = "e2b", .routes = routes, .end = end};
