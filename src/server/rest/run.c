/* SPDX-License-Identifier: Apache-2.0 */
/* run: code that is run, with and without a session, or only judged. */
#include "server/rest/rest.h"

#include <errno.h>
#include <string.h>

struct run_call {
	struct rest_call call;
	bool streams;
	struct events events;
};

static void release(struct rest_call *call)
{
	events_free(&((struct run_call *)call)->events);
}

static struct run_call *new_call(struct exchange *exchange, const char *kind)
{
	struct run_call *run = (struct run_call *)rest_call_new(exchange, sizeof *run);

	if (!run)
		return NULL;
	run->call.ran_as = kind;
	run->call.release = release;
	return run;
}

/* --- its end ----------------------------------------------------------------------- */

static void on_done(void *user, struct execpy_result *result, const struct error *why)
{
	struct run_call *run = user;
	struct rest_call *call = &run->call;
	struct json json;

	call->run = NULL;
	call->result = result;
	if (result)
		rest_count(call->rest, call->tenant, call->ran_as, &call->ask, result);
	if (!result && (why->number == ENOENT || why->number == EIDRM))
		owned_drop(call->rest->server, call->session);
	if (!result && run->streams) {
		events_fail(&run->events, why);
	} else if (!result) {
		rest_fail(call, why);
	} else if (run->streams) {
		events_end(&run->events);
	} else {
		json = json_stream_writer(&call->stream);
		result_write(result, &json);
		rest_send(call, 200, "application/json");
	}
}

/* What was judged, and for a dry run also what was seen. */
static void on_judged(void *user, struct execpy_result *result, const struct error *why)
{
	struct run_call *run = user;
	struct rest_call *call = &run->call;
	struct json json = json_stream_writer(&call->stream);
	const char *text;
	size_t length;

	if (!rest_take_result(call, result, why))
		return;
	if (!result->has_verdict) {
		rest_problem(call, 503, "the code was not checked: %s",
			     execpy_result_reason(result));
		return;
	}
	text = execpy_result_check_json(result, &length);
	if (!text) {
		rest_problem(call, 503, "memory is out");
		return;
	}
	emit_raw(&json, (struct span){(const uint8_t *)text, length});
	rest_send(call, 200, "application/json");
}

/* --- its beginning ------------------------------------------------------------------ */

static void begin(struct run_call *run, struct async *async)
{
	struct rest_call *call = &run->call;
	struct error err = {0};

	async->session = call->session[0] ? call->session : NULL;
	async->user = run;
	if (!rest_take_slot(call))
		return;
	if (run->streams && events_begin(&run->events, call, async, &err) < 0) {
		rest_fail(call, &err);
		return;
	}
	rest_begin(call, &call->ask.request, async);
}

static void handle_run(struct run_call *run)
{
	struct rest_call *call = &run->call;
	struct ask_rules rules = rest_rules(call->tenant);
	struct async async = {.done = on_done};
	struct rest_run wanted = {0};
	struct error err = {0};

	rules.in_session = call->session[0] != '\0';
	if (!rest_read(call, false))
		return;
	run->streams = rest_wants_events(call->exchange);
	if (rest_take_run(&call->ask, call->ask.document, &rules, &wanted, &err) < 0)
		rest_fail(call, &err);
	else if (wanted.detach && run->streams)
		rest_problem(call, 400, "detach: a detached run has no events to wait for");
	else if (wanted.detach)
		kept_begin(call);
	else
		begin(run, &async);
}

void rest_handle_run(struct exchange *exchange)
{
	struct run_call *run = new_call(exchange, "run");

	if (run)
		handle_run(run);
}

void rest_handle_session_run(struct exchange *exchange)
{
	struct run_call *run = new_call(exchange, "session run");

	if (run && rest_take_session(&run->call))
		handle_run(run);
}

static void judge(struct exchange *exchange, const char *kind, struct async async)
{
	static const char *const keys[] = {"code", "policy", NULL};
	struct run_call *run = new_call(exchange, kind);
	struct rest_call *call = &run->call;
	struct ask_rules rules;
	struct error err = {0};

	if (!run || !rest_read(call, false))
		return;
	rules = rest_rules(call->tenant);
	call->ask.request.limits = ask_to_engine(&rules.initial);
	if (ask_known(call->ask.document, "", keys, &err) < 0 ||
	    ask_code(&call->ask, call->ask.document, &err) < 0 ||
	    ask_policy(call->ask.document, &rules, &call->ask.request.policy, &err) < 0) {
		rest_fail(call, &err);
		return;
	}
	async.done = on_judged;
	begin(run, &async);
}

void rest_handle_check(struct exchange *exchange)
{
	judge(exchange, "check", (struct async){.check_only = true});
}

void rest_handle_probe(struct exchange *exchange)
{
	judge(exchange, "probe", (struct async){.probe = true});
}
