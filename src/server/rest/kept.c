/* SPDX-License-Identifier: Apache-2.0 */
/* kept: runs that outlive the request that began them.
 *
 * A detached run goes on when its client goes away, and its result is kept for a while,
 * for its tenant alone: for REST_KEPT_MS, and no more than REST_KEPT_MAX of them and
 * REST_KEPT_BYTES together; the oldest results go first. While one is sent it stays. */
#include "server/rest/rest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kept_run {
	TAILQ_ENTRY(kept_run) entry;
	struct rest *rest;
	struct tenant *tenant;
	char id[EXECPY_SESSION_ID_MAX];
	struct ask ask;
	struct held_body held; /* that the request is made of */
	char session[EXECPY_SESSION_ID_MAX];
	struct run *run; /* while it goes on */
	struct execpy_result *result;
	char why[ERROR_TEXT_MAX]; /* there is none */
	bool refused;
	uint64_t bytes;
	struct event *expiry;
	unsigned readers;
};

static void forget(struct kept_run *kept)
{
	TAILQ_REMOVE(&kept->rest->kept, kept, entry);
	if (kept->run) {
		rest_abandon(kept->rest, kept->tenant, "detached run", &kept->ask, kept->run);
		tenant_end_run(kept->tenant);
	}
	if (kept->expiry)
		event_free(kept->expiry);
	execpy_result_free(kept->result);
	ask_free(&kept->ask);
	held_body_drop(&kept->held);
	free(kept);
}

void kept_free(struct rest *rest)
{
	while (!TAILQ_EMPTY(&rest->kept))
		forget(TAILQ_FIRST(&rest->kept));
}

static void expire_in(struct kept_run *kept, uint64_t ms)
{
	const struct timeval delay = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};

	event_add(kept->expiry, &delay);
}

static void on_expiry(evutil_socket_t fd, short what, void *argument)
{
	struct kept_run *kept = argument;

	if (kept->readers > 0)
		expire_in(kept, 1000);
	else
		forget(kept);
}

/* The oldest results of the tenant go, until the newest has room. */
static void make_room(struct kept_run *newest)
{
	struct rest *rest = newest->rest;
	struct kept_run *kept, *next;
	uint64_t bytes = 0;
	size_t count = 0;

	TAILQ_FOREACH(kept, &rest->kept, entry)
	if (kept->tenant == newest->tenant) {
		bytes += kept->bytes;
		count++;
	}
	for (kept = TAILQ_FIRST(&rest->kept); kept; kept = next) {
		next = TAILQ_NEXT(kept, entry);
		if (count <= REST_KEPT_MAX && bytes <= REST_KEPT_BYTES)
			break;
		if (kept->tenant != newest->tenant || kept->run || kept->readers > 0 ||
		    kept == newest)
			continue;
		count--;
		bytes -= kept->bytes;
		forget(kept);
	}
}

static void on_done(void *user, struct execpy_result *result, const struct error *why)
{
	struct kept_run *kept = user;
	struct rest *rest = kept->rest;

	kept->run = NULL;
	kept->result = result;
	tenant_end_run(kept->tenant);
	if (result) {
		rest_count(rest, kept->tenant, "detached run", &kept->ask, result);
		kept->bytes = result_bytes(result);
	} else {
		kept->refused = true;
		snprintf(kept->why, sizeof kept->why, "%s", why->text);
	}
	ask_free(&kept->ask); /* with its files */
	held_body_drop(&kept->held);
	/* The newest stands at the end. */
	TAILQ_REMOVE(&rest->kept, kept, entry);
	TAILQ_INSERT_TAIL(&rest->kept, kept, entry);
	make_room(kept);
	expire_in(kept, REST_KEPT_MS);
}

static const char *state_of(const struct kept_run *kept)
{
	return kept->run ? "running" : kept->refused ? "refused" : "done";
}

/* {id, state, result, detail} */
static void write_kept(struct kept_run *kept, struct json_stream *stream)
{
	struct json json = json_stream_writer(stream);

	emit_begin_object(&json);
	emit_key(&json, "id");
	emit_string(&json, kept->id);
	emit_key(&json, "state");
	emit_string(&json, state_of(kept));
	emit_key(&json, "result");
	if (kept->result)
		result_write(kept->result, &json);
	else
		emit_null(&json);
	emit_key(&json, "detail");
	emit_string(&json, kept->refused ? kept->why : NULL);
	emit_end_object(&json);
}

static struct kept_run *keep(struct rest_call *call)
{
	struct kept_run *kept = calloc(1, sizeof *kept);

	if (!kept)
		return NULL;
	kept->rest = call->rest;
	kept->tenant = call->tenant;
	kept->ask = call->ask;
	ask_init(&call->ask);
	kept->held = exchange_take_held(call->exchange);
	snprintf(kept->session, sizeof kept->session, "%s", call->session);
	TAILQ_INSERT_TAIL(&kept->rest->kept, kept, entry);
	kept->expiry = evtimer_new(async_base(kept->rest->server->engine), on_expiry, kept);
	return kept;
}

static size_t count_running(const struct rest *rest, const struct tenant *tenant)
{
	const struct kept_run *kept;
	size_t count = 0;

	TAILQ_FOREACH(kept, &rest->kept, entry)
	count += kept->tenant == tenant && kept->run;
	return count;
}

void kept_begin(struct rest_call *call)
{
	struct async async = {.done = on_done};
	struct error err = {0};
	struct kept_run *kept;

	if (count_running(call->rest, call->tenant) >= REST_KEPT_MAX) {
		rest_problem(call, 429, "there are %d detached runs that go on already",
			     REST_KEPT_MAX);
		return;
	}
	if (!rest_take_slot(call))
		return;
	kept = keep(call);
	if (!kept || !kept->expiry) {
		if (kept)
			forget(kept);
		rest_problem(call, 503, "memory is out");
		return;
	}
	async.session = kept->session[0] ? kept->session : NULL;
	async.user = kept;
	kept->run = async_begin(kept->rest->server->engine, &kept->ask.request, &async, &err);
	if (!kept->run) {
		forget(kept);
		rest_fail(call, &err);
		return;
	}
	call->slots--; /* it is the run's now */
	snprintf(kept->id, sizeof kept->id, "%s", async_id(kept->run));
	write_kept(kept, &call->stream);
	exchange_field(call->exchange, "Location", "/v1/runs/%s", kept->id);
	rest_send(call, 202, "application/json");
}

/* --- what is asked about one ----------------------------------------------------- */

struct kept_call {
	struct rest_call call;
	struct kept_run *kept;
};

static struct kept_run *find(struct rest *rest, const struct tenant *tenant, const char *id)
{
	struct kept_run *kept;

	TAILQ_FOREACH(kept, &rest->kept, entry)
	if (kept->tenant == tenant && strcmp(kept->id, id) == 0)
		break;
	return kept;
}

static void release(struct rest_call *call)
{
	struct kept_call *kept = (struct kept_call *)call;

	if (kept->kept)
		kept->kept->readers--;
}

/* The call of a request for one that there is, or NULL when it was answered. */
static struct kept_call *new_call(struct exchange *exchange)
{
	struct kept_call *call = (struct kept_call *)rest_call_new(exchange, sizeof *call);
	const char *id = exchange_parameter(exchange, "id");
	struct kept_run *kept = call ? find(call->call.rest, call->call.tenant, id) : NULL;

	if (!call)
		return NULL;
	if (!kept) {
		rest_problem(&call->call, 404,
			     "there is no detached run %.60s, or its result is not kept any more",
			     id);
		return NULL;
	}
	call->kept = kept;
	kept->readers++;
	call->call.release = release;
	return call;
}

void rest_get_run(struct exchange *exchange)
{
	struct kept_call *call = new_call(exchange);

	if (!call)
		return;
	exchange_field(exchange, "Cache-Control", "no-store");
	write_kept(call->kept, &call->call.stream);
	rest_send(&call->call, 200, "application/json");
}

void rest_delete_run(struct exchange *exchange)
{
	struct kept_call *call = new_call(exchange);
	struct kept_run *kept;

	if (!call)
		return;
	kept = call->kept;
	if (kept->run)
		async_cancel(kept->run);
	else if (kept->readers > 1)
		expire_in(kept, 1000);
	else
		call->kept = NULL;
	if (!call->kept)
		forget(kept);
	rest_done(&call->call);
}
