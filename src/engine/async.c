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
	if (run->session && (run->refused_for == ENOENT || run->refused_for == EIDRM))
		session_forget(run->engine, run->result->session);
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
	struct run_purpose purpose = {.check_only = async->check_only, .hold = async->hold};
	struct ending_watch *watch;
	struct run *run;

	if (async->session) {
		purpose.session = session_know(engine, async->session, err);
		if (!purpose.session)
			return NULL;
	}
	watch = calloc(1, sizeof *watch);
	if (!watch) {
		fail(err, ENOMEM, "run");
		return NULL;
	}
	watch->async = *async;
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

void async_cancel(struct run *run)
{
	run_cancel(run);
}

void async_abandon(struct run *run)
{
	struct execpy_result *result;

	if (!run)
		return;
	if (run->watch)
		free_watch(run->watch);
	run->watch = NULL;
	result = run->result;
	run_free(run);
	execpy_result_free(result);
}

/* --- sessions ------------------------------------------------------------------ */

struct opening {
	struct query query;
	struct execpy_engine *engine;
	struct execpy_session_options options;
	char template[64]; /* which the options name */
	void (*done)(void *user, const struct execpy_session_info *info, const struct error *why);
	void *user;
};

static void free_opening(struct opening *opening)
{
	event_free(opening->query.event);
	bytes_free(&opening->query.answer);
	free(opening);
}

static void on_opened(evutil_socket_t fd, short what, void *argument)
{
	struct opening *opening = argument;
	struct execpy_session_info info;
	struct error err = {0};
	int r = query_end(opening->engine, &opening->query, &err);

	if (r == 0)
		r = session_opened(&opening->query, &opening->options, &info, &err);
	opening->done(opening->user, r == 0 ? &info : NULL, &err);
	free_opening(opening);
}

struct opening *async_open_session(struct execpy_engine *engine,
				   const struct execpy_session_options *options,
				   void (*done)(void *user, const struct execpy_session_info *info,
						const struct error *why),
				   void *user, struct error *err)
{
	struct opening *opening = calloc(1, sizeof *opening);

	if (opening)
		opening->query.event = event_new(engine->base, -1, 0, on_opened, opening);
	if (!opening || !opening->query.event) {
		free(opening);
		fail(err, ENOMEM, "session");
		return NULL;
	}
	opening->engine = engine;
	opening->done = done;
	opening->user = user;
	if (session_ask(engine, options, &opening->query, err) < 0) {
		free_opening(opening);
		return NULL;
	}
	snprintf(opening->template, sizeof opening->template, "%s",
		 options->template ? options->template : "auto");
	opening->options.template = opening->template;
	return opening;
}

void async_abandon_opening(struct opening *opening)
{
	if (!opening)
		return;
	TAILQ_REMOVE(&opening->engine->queries, &opening->query, entry);
	free_opening(opening);
}
