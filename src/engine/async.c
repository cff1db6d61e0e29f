/* SPDX-License-Identifier: Apache-2.0 */
/* async: see async.h.
 *
 * A run notices its end deep inside the handling of a message, where whoever called
 * may still look at it. So the end is only noted there, by an event that is made
 * active, and told from the loop itself. */
#include "engine/async.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const struct execpy_request nothing = {.code = "", .stdin_fd = -1, .out_directory = -1};

struct ending_watch {
	struct async async;
	struct event *event;
};

struct event_base *async_base(struct execpy_engine *engine)
{
	return engine->base;
}

const char *async_dead(const struct execpy_engine *engine)
{
	return engine->dead && !engine->remote ? engine->why : NULL;
}

static void free_watch(struct ending_watch *watch)
{
	if (watch->event)
		event_free(watch->event);
	free(watch);
}

static void on_end(evutil_socket_t fd, short what, void *argument)
{
	struct run *run = argument;
	struct ending_watch *watch = run->watch;
	struct async async = watch->async;
	struct execpy_result *result = NULL;
	struct error err = {0};

	run->watch = NULL;
	free_watch(watch);
	/* It is done: this does not wait. */
	run_wait(run, &result, &err);
	async.done(async.user, result, &err);
}

void async_note_end(struct run *run)
{
	if (run->watch)
		event_active(run->watch->event, EV_TIMEOUT, 0);
}

struct run *async_begin(struct execpy_engine *engine, const struct execpy_request *request,
			const struct async *async, struct error *err)
{
	const struct run_purpose purpose = {
		.check_only = async->check_only,
		.probe = async->probe,
		.session = async->session,
		.hold = async->hold,
	};
	struct ending_watch *watch = calloc(1, sizeof *watch);
	struct run *run;

	if (!watch) {
		fail(err, ENOMEM, "run");
		return NULL;
	}
	watch->async = *async;
	if (async->hold)
		async->hold->failed.number = EPIPE; /* until it was used */
	run = run_start(engine, request ? request : &nothing, &async->callbacks, &purpose, err);
	if (!run) {
		free(watch);
		return NULL;
	}
	watch->event = event_new(engine->base, -1, 0, on_end, run);
	if (!watch->event) {
		free(watch);
		fail(err, ENOMEM, "run");
		async_abandon(run);
		return NULL;
	}
	run->watch = watch;
	if (run->state == RUN_DONE)
		async_note_end(run);
	return run;
}

void async_note_start(struct run *run)
{
	const struct async *async = run->watch ? &run->watch->async : NULL;

	if (async && async->started)
		async->started(async->telling, run->result);
	if (async && async->showing)
		run_show(run, async->showing, async->telling);
}

const char *async_id(const struct run *run)
{
	return run->result->id;
}

void async_cancel(struct run *run)
{
	run_cancel(run);
}

struct execpy_result *async_give_up(struct run *run)
{
	struct execpy_result *result;
	bool begun;

	if (!run)
		return NULL;
	if (run->watch)
		free_watch(run->watch);
	run->watch = NULL;
	run->cancelled = true;
	result = run->result;
	begun = run->state != RUN_LOOKING && !run->refused;
	run_free(run);
	if (begun)
		return result;
	execpy_result_free(result);
	return NULL;
}

void async_abandon(struct run *run)
{
	execpy_result_free(async_give_up(run));
}

void async_pause(struct run *run)
{
	run_pause(run);
}

void async_resume(struct run *run)
{
	run_resume(run);
}
