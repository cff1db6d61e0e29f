/* SPDX-License-Identifier: Apache-2.0 */
/* events: a run that is watched while it goes on, as server-sent events.
 *
 * An event is a line `event: NAME` and one line `data:` of JSON. The response begins with
 * the first of them, so that a request that is refused still gets its status. A client
 * that does not read holds the code up: its output is not read then, and it waits in its
 * next write. What findings and displays were not told of while it ran come before the
 * result. */
#include "server/rest/rest.h"

#include "base/cleanup.h"

#include <string.h>

static void begin_response(struct events *events)
{
	struct exchange *exchange = events->call->exchange;

	if (events->begun)
		return;
	events->begun = true;
	exchange_field(exchange, "Cache-Control", "no-store");
	exchange_begin(exchange, 200, "text/event-stream", -1);
}

static struct json begin_event(struct events *events, const char *name, struct bytes *out)
{
	begin_response(events);
	bytes_append_format(out, "event: %s\ndata: ", name);
	return (struct json){.out = out};
}

static void end_event(struct events *events, struct bytes *out)
{
	bytes_append_text(out, "\n\n");
	/* One that does not fit into memory is left out: the result has it. */
	if (!out->failed)
		exchange_write(events->call->exchange, bytes_span(out));
	if (events->call->run && exchange_unsent(events->call->exchange) > EXCHANGE_HIGH_BYTES)
		async_pause(events->call->run);
}

static void tell_started(void *user, const struct execpy_result *so_far)
{
	struct events *events = user;
	autobytes out = {0};
	struct json json = begin_event(events, "started", &out);

	emit_begin_object(&json);
	emit_key(&json, "id");
	emit_string(&json, so_far->id);
	emit_key(&json, "template");
	emit_string(&json, so_far->template);
	emit_key(&json, "warm");
	emit_bool(&json, so_far->warm);
	emit_end_object(&json);
	end_event(events, &out);
}

static void tell_output(struct events *events, unsigned which, struct span data, bool last)
{
	autobytes out = {.ceiling = SIZE_MAX / 4};
	struct json json;

	if (data.length + events->outputs[which].length == 0)
		return;
	json = begin_event(events, which == 0 ? "stdout" : "stderr", &out);
	emit_begin_object(&json);
	emit_key(&json, "text");
	if (!emit_piece(&json, &events->outputs[which], data, last))
		return;
	emit_end_object(&json);
	end_event(events, &out);
}

static void on_output(void *user, enum execpy_stream stream, const void *data, size_t length)
{
	tell_output(user, stream == EXECPY_STDOUT ? 0 : 1, (struct span){data, length}, false);
}

static void tell_finding(void *user, const struct finding *finding)
{
	struct events *events = user;
	autobytes out = {0};
	struct json json = begin_event(events, "finding", &out);

	events->findings++;
	result_write_finding(&json, finding);
	end_event(events, &out);
}

static void tell_display(void *user, struct span bundle)
{
	struct events *events = user;
	autobytes out = {.ceiling = SIZE_MAX / 4};
	struct json json = begin_event(events, "display", &out);

	events->displays++;
	result_write_bundle(&json, bundle);
	end_event(events, &out);
}

static void on_quiet(evutil_socket_t fd, short what, void *argument)
{
	static const char comment[] = ": still running\n\n";
	struct events *events = argument;

	begin_response(events);
	if (exchange_unsent(events->call->exchange) == 0)
		exchange_write(events->call->exchange,
			       (struct span){(const uint8_t *)comment, sizeof comment - 1});
}

bool rest_wants_events(const struct exchange *exchange)
{
	const char *accepted = exchange_header(exchange, "accept");

	return accepted && strstr(accepted, "text/event-stream");
}

static void on_drained(struct rest_call *call)
{
	if (call->run)
		async_resume(call->run);
}

int events_begin(struct events *events, struct rest_call *call, struct async *async,
		 struct error *err)
{
	static const struct run_showing showing = {.finding = tell_finding,
						   .display = tell_display};
	const struct timeval pace = {REST_ALIVE_MS / 1000, REST_ALIVE_MS % 1000 * 1000};

	events->call = call;
	events->alive =
		event_new(async_base(call->rest->server->engine), -1, EV_PERSIST, on_quiet, events);
	if (!events->alive || event_add(events->alive, &pace) < 0)
		return fail(err, ENOMEM, "events");
	async->callbacks = (struct execpy_callbacks){.output = on_output, .user = events};
	async->started = tell_started;
	async->showing = &showing;
	async->telling = events;
	call->drained = on_drained;
	return 0;
}

/* What the result has and nobody told of. */
static void tell_rest(struct events *events, struct execpy_result *result)
{
	size_t before = (result->files_cut != NULL) + result->fenced, told = events->findings;

	tell_output(events, 0, (struct span){NULL, 0}, true);
	tell_output(events, 1, (struct span){NULL, 0}, true);
	for (size_t i = 0;; i++) {
		autobytes out = {0};
		struct json json;

		if (i >= before && i < before + told)
			continue;
		json = (struct json){.out = &out};
		bytes_append_text(&out, "event: finding\ndata: ");
		if (!result_write_finding_at(result, i, &json))
			break;
		end_event(events, &out);
	}
	while (events->displays < result->display_count)
		tell_display(events, result->displays[events->displays]);
}

void events_end(struct events *events)
{
	struct rest_call *call = events->call;
	struct json json = json_stream_writer(&call->stream);

	event_del(events->alive);
	begin_response(events);
	tell_rest(events, call->result);
	bytes_append_text(&call->stream.text, "event: result\ndata: ");
	result_write(call->result, &json);
	bytes_append_text(&call->stream.text, "\n\n");
	if (call->stream.parts.failed)
		call->stream.text.failed = -ENOMEM;
	rest_send_rest(call);
}

void events_fail(struct events *events, const struct error *why)
{
	struct rest_call *call = events->call;
	unsigned status = rest_status(why->number);
	struct exchange *exchange;
	autobytes out = {0};
	struct json json;

	if (!events->begun) {
		rest_fail(call, why);
		return;
	}
	json = begin_event(events, "problem", &out);
	http_write_problem(&json, status, why->text);
	end_event(events, &out);
	exchange = call->exchange;
	rest_call_free(call);
	exchange_end(exchange);
}

void events_free(struct events *events)
{
	if (events->alive)
		event_free(events->alive);
	events->alive = NULL;
}
