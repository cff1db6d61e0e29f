/* SPDX-License-Identifier: Apache-2.0 */
/* batch: many runs of one request, told one by one as they end.
 *
 * A few go on side by side. Each line of the answer is an object: {index, result}, or
 * {index, problem} for a run that was wrong in itself; one spoils no other. What has ended
 * waits until the lines before it are sent, and with a client that does not read nothing
 * more begins, so no more results are held than runs may go on. */
#include "server/rest/rest.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

#define KIND "batch run" /* for records */

struct item {
	TAILQ_ENTRY(item) entry; /* in `going`, then in `ended` */
	struct batch_call *batch;
	size_t index;
	struct ask ask;
	struct run *run;
	struct execpy_result *result;
	struct error why;
};

struct batch_call {
	struct rest_call call;
	struct ask_rules rules;
	const json_t *runs;
	size_t next, count, active; /* active: begun and not sent */
	TAILQ_HEAD(, item) going, ended;
	struct item *sent; /* its line is in the stream */
	bool failed;       /* a line was lost */
};

static void free_item(struct item *item)
{
	const struct rest_call *call = &item->batch->call;

	rest_abandon(call->rest, call->tenant, KIND, &item->ask, item->run);
	execpy_result_free(item->result);
	ask_free(&item->ask);
	free(item);
}

static void release(struct rest_call *call)
{
	struct batch_call *batch = (struct batch_call *)call;
	struct item *item;

	while ((item = TAILQ_FIRST(&batch->going))) {
		TAILQ_REMOVE(&batch->going, item, entry);
		free_item(item);
	}
	while ((item = TAILQ_FIRST(&batch->ended))) {
		TAILQ_REMOVE(&batch->ended, item, entry);
		free_item(item);
	}
	if (batch->sent)
		free_item(batch->sent);
}

static void proceed(struct rest_call *call);

static void end_item(struct item *item)
{
	TAILQ_REMOVE(&item->batch->going, item, entry);
	TAILQ_INSERT_TAIL(&item->batch->ended, item, entry);
}

static void on_done(void *user, struct execpy_result *result, const struct error *why)
{
	struct item *item = user;
	struct rest_call *call = &item->batch->call;

	item->run = NULL;
	item->result = result;
	item->why = *why;
	if (result)
		rest_count(call->rest, call->tenant, KIND, &item->ask, result);
	end_item(item);
	proceed(call);
}

/* Begins the next run. What is wrong with it is its line. */
static bool begin_next(struct batch_call *batch)
{
	const json_t *object = json_array_get(batch->runs, batch->next);
	struct item *item = calloc(1, sizeof *item);
	struct async async = {.done = on_done, .user = item};
	struct rest_run wanted = {0};
	int r = 0;

	if (!item)
		return false;
	item->batch = batch;
	item->index = batch->next++;
	ask_init(&item->ask);
	TAILQ_INSERT_TAIL(&batch->going, item, entry);
	batch->active++;
	if (!json_is_object(object))
		r = refuse(&item->why, EINVAL, "a run is an object");
	if (r == 0)
		r = rest_take_run(&item->ask, object, &batch->rules, &wanted, &item->why);
	if (r == 0 && wanted.detach)
		r = refuse(&item->why, EINVAL, "detach: a run of a batch has its line to wait for");
	if (r == 0)
		item->run = async_begin(batch->call.rest->server->engine, &item->ask.request,
					&async, &item->why);
	if (!item->run)
		end_item(item);
	return true;
}

static void write_line(struct batch_call *batch, struct item *item)
{
	struct json json;

	json_stream_free(&batch->call.stream);
	json = json_stream_writer(&batch->call.stream);
	emit_begin_object(&json);
	emit_count(&json, "index", item->index);
	if (item->result) {
		emit_key(&json, "result");
		result_write(item->result, &json);
	} else {
		emit_key(&json, "problem");
		http_write_problem(&json, rest_status(item->why.number), item->why.text);
	}
	emit_end_object(&json);
	bytes_append_text(&batch->call.stream.text, "\n");
}

/* Sends what has ended: false when the client takes no more now. */
static bool send_lines(struct batch_call *batch)
{
	for (;;) {
		if (!batch->sent) {
			batch->sent = TAILQ_FIRST(&batch->ended);
			if (!batch->sent)
				return true;
			TAILQ_REMOVE(&batch->ended, batch->sent, entry);
			write_line(batch, batch->sent);
		}
		if (!rest_pump(batch->call.exchange, &batch->call.stream))
			return false;
		batch->failed |=
			batch->call.stream.text.failed != 0 || batch->call.stream.parts.failed;
		free_item(batch->sent);
		batch->sent = NULL;
		batch->active--;
	}
}

static void proceed(struct rest_call *call)
{
	struct batch_call *batch = (struct batch_call *)call;
	struct exchange *exchange = call->exchange;

	while (send_lines(batch)) {
		while (!batch->failed && batch->active < call->slots && batch->next < batch->count)
			batch->failed = !begin_next(batch);
		if (batch->failed || TAILQ_EMPTY(&batch->ended))
			break;
	}
	if (batch->failed) {
		rest_call_free(call);
		exchange_break(exchange);
	} else if (batch->next == batch->count && batch->active == 0) {
		rest_call_free(call);
		exchange_end(exchange);
	}
}

void rest_handle_batch(struct exchange *exchange)
{
	static const char *const keys[] = {"runs", NULL};
	struct batch_call *batch = (struct batch_call *)rest_call_new(exchange, sizeof *batch);
	struct rest_call *call = &batch->call;
	struct error err = {0};

	if (!batch)
		return;
	TAILQ_INIT(&batch->going);
	TAILQ_INIT(&batch->ended);
	call->release = release;
	call->drained = proceed;
	if (!rest_read(call, false))
		return;
	batch->rules = rest_rules(call->tenant);
	batch->runs = json_object_get(call->ask.document, "runs");
	batch->count = json_array_size(batch->runs);
	if (ask_known(call->ask.document, "", keys, &err) < 0) {
		rest_fail(call, &err);
		return;
	}
	if (batch->count == 0 || batch->count > REST_BATCH_RUNS_MAX) {
		rest_problem(call, 400, "runs must be a list of 1 to %d runs", REST_BATCH_RUNS_MAX);
		return;
	}
	if (!rest_take_slot(call))
		return;
	while (call->slots < REST_BATCH_CELLS && call->slots < batch->count &&
	       tenant_begin_run(call->tenant))
		call->slots++;
	exchange_begin(exchange, 200, "application/x-ndjson", -1);
	proceed(call);
}
