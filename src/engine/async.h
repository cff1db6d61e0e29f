/* SPDX-License-Identifier: Apache-2.0 */
/* async: runs and sessions that do not block, for servers.
 *
 * A server puts its own events on the engine's loop and begins runs from what comes
 * in; when one is over its `done` is called from the loop, once. Nothing here waits or
 * turns the loop, so anything may be begun and given up in a callback of the loop, in
 * `done`, too. Only while a run tells of itself (output, started, shown) it may not be
 * given up. The calls of execpy.h do wait: they turn the loop, and are not for
 * servers. */
#ifndef EXECPY_ENGINE_ASYNC_H
#define EXECPY_ENGINE_ASYNC_H

#include "engine/engine.h"

struct async {
	const char *session; /* NULL: in none */
	bool check_only;     /* the verdict only */
	bool probe;          /* a dry run */
	struct hold *hold;   /* not code, but something with the session's workspace */
	struct execpy_callbacks callbacks;
	/* The result is the receiver's; or NULL, and `why` says what is wrong with the
	 * request. The run is gone then. */
	void (*done)(void *user, struct execpy_result *result, const struct error *why);
	/* Told while it goes on, or NULL: that its cell is there, and what it shows. */
	void (*started)(void *user, const struct execpy_result *so_far);
	const struct run_showing *showing;
	void *telling; /* user of these two */
	void *user;
};

/* Where a server's events live. The engine owns it. */
struct event_base *async_base(struct execpy_engine *engine);
/* Why no run can begin any more, or NULL. A daemon that is gone may come back. */
const char *async_dead(const struct execpy_engine *engine);

/* The request, and what it points at, must stay until `done`. NULL when it is wrong in
 * itself; then `done` is not called. A hold needs no request. */
struct run *async_begin(struct execpy_engine *engine, const struct execpy_request *request,
			const struct async *async, struct error *err);
/* Its id, as its result will have it. */
const char *async_id(const struct run *run);
/* Ends it as soon as can be; `done` will say so. */
void async_cancel(struct run *run);
/* Ends it, and nobody is told: `done` is not called any more. NULL-safe. */
void async_abandon(struct run *run);
/* The same: its result so far is the caller's, cancelled unless it was over already. NULL
 * when it never began. NULL-safe. */
struct execpy_result *async_give_up(struct run *run);
/* Its output is not read, so that the code waits in its next write; its time goes on.
 * Pausing is allowed while it tells of output, resuming is not. */
void async_pause(struct run *run);
void async_resume(struct run *run);

/* Asks about sessions, or does something with one: `done` gets what it is like now, of
 * a list what each is like, of what has ended nothing; or none, and why->number is not 0.
 * What the question points at need not stay. NULL when it is wrong in itself; then `done`
 * is not called. */
struct asking;
typedef void session_answered(void *user, const struct execpy_session_info *infos, size_t count,
			      const struct error *why);
struct asking *async_ask_session(struct execpy_engine *engine,
				 const struct session_question *question, session_answered *done,
				 void *user, struct error *err);
/* `done` is not called any more. What was asked for may still be done; a session that
 * comes to be so is ended. `released`, if it is not NULL, is called for each session that
 * OPEN or FORK asked for, once it has ended or is not to come: at the latest when the
 * engine is closed. NULL-safe. */
void async_abandon_asking(struct asking *asking, void (*released)(void *user), void *user);

/* Ends one that nobody wants any more; only `released`, if it is not NULL, is called then. */
void async_end_session(struct execpy_engine *engine, const char *id, void (*released)(void *user),
		       void *user);

#endif
