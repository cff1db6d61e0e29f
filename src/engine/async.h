/* SPDX-License-Identifier: Apache-2.0 */
/* async: runs that do not block, for servers.
 *
 * A server puts its own events on the engine's loop and begins runs from what comes
 * in; when a run is over its `done` is called from the loop, once. Nothing here may
 * wait, but beginning something in a session may: the first time that the session is
 * named the warden is asked about it. Such a question, like every call of execpy.h,
 * turns the loop itself, so nothing may be begun inside of a callback of the loop:
 * a server's callbacks only note what there is to do, and whoever turns the loop
 * does it. `done` may begin nothing for the same reason. */
#ifndef EXECPY_ENGINE_ASYNC_H
#define EXECPY_ENGINE_ASYNC_H

#include "engine/engine.h"

struct async {
	const char *session; /* NULL: in none */
	bool check_only;     /* the verdict only */
	struct hold *hold;   /* not code, but something with the session's workspace */
	struct execpy_callbacks callbacks;
	/* The result is the receiver's; or NULL, and `why` says what is wrong with the
	 * request. The run is gone then. */
	void (*done)(void *user, struct execpy_result *result, const struct error *why);
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
/* Ends it as soon as can be; `done` will say so. */
void async_cancel(struct run *run);
/* Ends it, and nobody is told: `done` is not called any more. NULL-safe. */
void async_abandon(struct run *run);

/* Opens a session: `done` gets what it is like, or NULL and why not. The options need not
 * stay. NULL when they are wrong; then `done` is not called. */
struct opening;
struct opening *async_open_session(struct execpy_engine *engine,
				   const struct execpy_session_options *options,
				   void (*done)(void *user, const struct execpy_session_info *info,
						const struct error *why),
				   void *user, struct error *err);
/* `done` is not called any more; the session, if it comes to be, ends when nobody uses it,
 * or with the engine. NULL-safe. */
void async_abandon_opening(struct opening *opening);

#endif
