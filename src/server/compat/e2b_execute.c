/* SPDX-License-Identifier: Apache-2.0 */
/* e2b_execute: code that runs in a context, and what it tells while it goes on.
 *
 * The response is lines of JSON: number_of_executions, then stdout, stderr and result as
 * they come, keepalive while nothing does, error, end_of_execution. It begins with the
 * first of them, so that what is refused still gets its status. A client that does not
 * read holds the code up.
 *
 * An uncaught exception is told as an error, and its traceback, which Python writes to
 * stderr, not once more: what looks like one is held back until more comes or the run is
 * over. */
#include "server/compat/e2b.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct execute_call {
	struct e2b_call e2b;
	char context[EXECPY_SESSION_ID_MAX]; /* its id, */
	char session[EXECPY_SESSION_ID_MAX]; /* and what it ran in */
	uint64_t number;
	bool begun, retried;
	bool renewed; /* the context is new: this is said */
	struct json_pieces outputs[2];
	struct bytes held; /* of stderr */
	size_t displays;   /* that were told */
	struct event *alive;
};

static struct rest_call *call_of(struct execute_call *execute)
{
	return &execute->e2b.call;
}

static void release(struct rest_call *call)
{
	struct execute_call *execute = (struct execute_call *)call;

	e2b_release(call);
	bytes_free(&execute->held);
	if (execute->alive)
		event_free(execute->alive);
}

/* --- what is told ---------------------------------------------------------------------- */

static void begin_response(struct execute_call *execute)
{
	struct exchange *exchange = call_of(execute)->exchange;

	if (execute->begun)
		return;
	execute->begun = true;
	exchange_field(exchange, "Cache-Control", "no-store");
	exchange_begin(exchange, 200, "application/x-ndjson", -1);
}

static void send_line(struct execute_call *execute, const struct bytes *line)
{
	struct rest_call *call = call_of(execute);

	begin_response(execute);
	/* One that does not fit into memory is left out. */
	if (!line->failed)
		exchange_write(call->exchange, bytes_span(line));
	if (call->run && exchange_unsent(call->exchange) > EXCHANGE_HIGH_BYTES)
		async_pause(call->run);
}

static void on_drained(struct rest_call *call)
{
	if (call->run)
		async_resume(call->run);
}

static void tell_text(struct execute_call *execute, int which, struct span data, bool last)
{
	autobytes line = {.ceiling = SIZE_MAX / 4};
	struct json json = {.out = &line};

	if (data.length + execute->outputs[which].length == 0)
		return;
	emit_begin_object(&json);
	emit_key(&json, "type");
	emit_string(&json, which == 0 ? "stdout" : "stderr");
	emit_key(&json, "text");
	if (!emit_piece(&json, &execute->outputs[which], data, last))
		return;
	emit_end_object(&json);
	bytes_append_text(&line, "\n");
	send_line(execute, &line);
}

static void tell_held(struct execute_call *execute)
{
	tell_text(execute, 1, bytes_span(&execute->held), false);
	bytes_clear(&execute->held);
}

/* Where a traceback begins that stands at the beginning of a line; the length: nowhere. */
static size_t find_traceback(struct span data)
{
	static const char words[] = "Traceback (most recent call last):\n";
	size_t length = sizeof words - 1;

	for (size_t at = 0; at + length <= data.length; at++) {
		const uint8_t *found = memmem(data.data + at, data.length - at, words, length);

		if (!found)
			break;
		at = (size_t)(found - data.data);
		if (at == 0 || data.data[at - 1] == '\n')
			return at;
	}
	return data.length;
}

static void on_output(void *user, enum execpy_stream stream, const void *data, size_t length)
{
	struct execute_call *execute = user;
	struct span all = {data, length};
	size_t shown = length;

	tell_held(execute);
	if (stream == EXECPY_STDERR)
		shown = find_traceback(all);
	tell_text(execute, stream == EXECPY_STDOUT ? 0 : 1, (struct span){data, shown}, false);
	bytes_append(&execute->held, all.data + shown, length - shown);
}

static void tell_renewed(struct execute_call *execute)
{
	static const char text[] = "execpy: the context had ended unused: this is a new one\n";

	tell_text(execute, 1, (struct span){(const uint8_t *)text, sizeof text - 1}, false);
}

static void on_started(void *user, const struct execpy_result *so_far)
{
	struct execute_call *execute = user;
	autobytes line = {0};

	e2b_write_count(&line, execute->number);
	send_line(execute, &line);
	if (execute->renewed)
		tell_renewed(execute);
}

static void tell_display(void *user, struct span bundle)
{
	struct execute_call *execute = user;
	autobytes line = {0};

	execute->displays++;
	e2b_write_result(&line, bundle, false);
	send_line(execute, &line);
}

static void ignore_finding(void *user, const struct finding *finding)
{
}

static void on_quiet(evutil_socket_t fd, short what, void *argument)
{
	struct execute_call *execute = argument;
	autobytes line = {0};

	e2b_write_type(&line, "keepalive");
	if (exchange_unsent(call_of(execute)->exchange) == 0)
		send_line(execute, &line);
}

/* --- its end --------------------------------------------------------------------------- */

/* The traceback that is told as the error is not stderr's, too. */
static void drop_traceback(struct execute_call *execute, const struct execpy_result *result)
{
	struct bytes *held = &execute->held;
	struct field field;

	if (held->length == 0 || result->error.length == 0 ||
	    !result_find_field(result->error, FIELD_TRACEBACK, &field))
		return;
	while (field.value.length > 0 && field.value.data[field.value.length - 1] == '\n')
		field.value.length--;
	while (held->length > 0 && held->data[held->length - 1] == '\n')
		held->length--;
	if (held->length >= field.value.length &&
	    memcmp(held->data + held->length - field.value.length, field.value.data,
		   field.value.length) == 0)
		held->length -= field.value.length;
}

static void finish(struct execute_call *execute)
{
	struct exchange *exchange = call_of(execute)->exchange;
	autobytes line = {0};

	e2b_write_type(&line, "end_of_execution");
	send_line(execute, &line);
	rest_call_free(call_of(execute));
	exchange_end(exchange);
}

static void fail_execute(struct execute_call *execute, const struct error *why)
{
	autobytes line = {0};

	if (!execute->begun) {
		e2b_fail(call_of(execute), why);
		return;
	}
	e2b_write_failure(&line, why);
	send_line(execute, &line);
	finish(execute);
}

static void tell_end(struct execute_call *execute, struct execpy_result *result)
{
	autobytes value = {0}, error = {0};

	drop_traceback(execute, result);
	tell_held(execute);
	tell_text(execute, 0, (struct span){NULL, 0}, true);
	tell_text(execute, 1, (struct span){NULL, 0}, true);
	while (execute->displays < result->display_count)
		tell_display(execute, result->displays[execute->displays]);
	if (result->value.length > 0) {
		e2b_write_result(&value, result->value, true);
		send_line(execute, &value);
	}
	e2b_write_error(&error, result);
	if (error.length > 0)
		send_line(execute, &error);
	finish(execute);
}

/* The session has ended by itself, idle or too old. Who named a context must know. */
static void lost_session(struct execute_call *execute, const struct error *why)
{
	struct rest_call *call = call_of(execute);
	struct compat *compat = call->rest->server->compat_state;
	struct e2b_context *context = e2b_find(compat, call->tenant, execute->context);
	struct error gone = {0};

	if (context && context->is_default && !execute->retried) {
		execute->retried = true;
		/* Another may have seen it before. */
		if (strcmp(context->session, execute->session) == 0)
			e2b_renew(context);
		context = e2b_find(compat, call->tenant, execute->context);
		if (context) {
			e2b_await(&execute->e2b, context);
			return;
		}
	} else if (context && context->step == E2B_READY) {
		e2b_close(context);
	}
	refuse(&gone, ENOENT, "%s", why->text);
	fail_execute(execute, &gone);
}

static void on_done(void *user, struct execpy_result *result, const struct error *why)
{
	struct execute_call *execute = user;
	struct rest_call *call = call_of(execute);

	call->run = NULL;
	call->result = result;
	if (!result && (why->number == ENOENT || why->number == EIDRM)) {
		lost_session(execute, why);
	} else if (!result) {
		fail_execute(execute, why);
	} else {
		rest_count(call->rest, call->tenant, call->ran_as, &call->ask, result);
		tell_end(execute, result);
	}
}

/* --- its beginning ----------------------------------------------------------------------- */

/* A response that has begun, since the context took its time, has no status any more. */
static bool take_slot(struct execute_call *execute)
{
	struct rest_call *call = call_of(execute);
	struct error err = {0};

	if (call->slots > 0)
		return true;
	if (!execute->begun)
		return rest_take_slot(call);
	if (tenant_begin_run(call->tenant)) {
		call->slots++;
		return true;
	}
	refuse(&err, EAGAIN, "you have as many runs as you may: %u", call->tenant->runs_max);
	fail_execute(execute, &err);
	return false;
}

static void on_ready(struct e2b_call *e2b, struct e2b_context *context, const struct error *why)
{
	static const struct run_showing showing = {.finding = ignore_finding,
						   .display = tell_display};
	struct execute_call *execute = (struct execute_call *)e2b;
	struct rest_call *call = &e2b->call;
	const struct async async = {
		.session = context ? context->session : NULL,
		.callbacks = {.output = on_output, .user = execute},
		.done = on_done,
		.user = execute,
		.started = on_started,
		.showing = &showing,
		.telling = execute,
	};
	struct error err = {0};

	if (!context) {
		fail_execute(execute, why);
		return;
	}
	if (!take_slot(execute))
		return;
	snprintf(execute->context, sizeof execute->context, "%s", context->id);
	snprintf(execute->session, sizeof execute->session, "%s", context->session);
	execute->number = ++context->executions;
	call->run = async_begin(call->rest->server->engine, &call->ask.request, &async, &err);
	if (!call->run) {
		fail_execute(execute, &err);
		return;
	}
	execute->renewed = context->renewed;
	context->renewed = false;
}

/* What a figure shows is data, too, for this API. */
static int take_environment(struct ask *ask, struct error *err)
{
	json_t *given = json_object_get(ask->document, "env_vars");
	json_t *environment = given ? json_incref(given) : json_object();
	int r;

	if (given && !json_is_object(given)) {
		json_decref(environment);
		return refuse(err, EINVAL, "env_vars must be an object of texts");
	}
	json_object_set_new(environment, "EXECPY_CHARTS", json_string("1"));
	r = json_object_set_new(ask->document, "env", environment);
	return r < 0 ? fail(err, ENOMEM, "env_vars") : ask_environment(ask, ask->document, err);
}

static int take_request(struct rest_call *call, const char **ret_id, struct error *err)
{
	json_t *object = call->ask.document;
	const char *language = NULL;
	int r;

	compat_drop_nulls(object);
	if ((r = ask_code(&call->ask, object, err)) < 0 ||
	    (r = ask_text(object, "", "context_id", ret_id, err)) < 0 ||
	    (r = e2b_take_language(object, &language, err)) < 0)
		return r;
	if (*ret_id && language)
		return refuse(err, EINVAL, "give either context_id or language");
	return take_environment(&call->ask, err);
}

static int keep_alive(struct execute_call *execute, struct error *err)
{
	const struct timeval pace = {REST_ALIVE_MS / 1000, REST_ALIVE_MS % 1000 * 1000};

	execute->alive = event_new(async_base(call_of(execute)->rest->server->engine), -1,
				   EV_PERSIST, on_quiet, execute);
	if (!execute->alive || event_add(execute->alive, &pace) < 0)
		return fail(err, ENOMEM, "execute");
	return 0;
}

void e2b_handle_execute(struct exchange *exchange)
{
	struct execute_call *execute =
		(struct execute_call *)e2b_call_new(exchange, sizeof *execute);
	struct compat *compat = exchange_server(exchange)->compat_state;
	struct rest_call *call = &execute->e2b.call;
	struct e2b_context *context;
	const char *id = NULL;
	struct error err = {0};
	bool is_new;

	if (!execute)
		return;
	call->release = release;
	call->ran_as = "e2b execute";
	call->drained = on_drained;
	execute->e2b.ready = on_ready;
	if (!rest_read(call, false))
		return;
	if (take_request(call, &id, &err) < 0 || keep_alive(execute, &err) < 0) {
		rest_fail(call, &err);
		return;
	}
	context = id ? e2b_find(compat, call->tenant, id) : e2b_default(compat, call->tenant);
	if (!context && id) {
		rest_problem(call, 404, "there is no context %.60s", id);
		return;
	}
	is_new = !context;
	if (is_new)
		context = e2b_new(compat, call, NULL, true);
	if (!context) {
		rest_problem(call, 503, "memory is out");
		return;
	}
	e2b_await(&execute->e2b, context);
	if (is_new)
		e2b_begin(context);
}
