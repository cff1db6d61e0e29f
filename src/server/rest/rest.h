/* SPDX-License-Identifier: Apache-2.0 */
/* rest: what the files of the REST API share (docs/openapi.yaml is its contract).
 *
 * A call is a request that is not answered at once. It belongs to its exchange: when the
 * client goes away, so does the call with all that goes on for it. A run that is to
 * outlive its client is kept (kept.c), and no call's. */
#ifndef EXECPY_SERVER_REST_REST_H
#define EXECPY_SERVER_REST_REST_H

#include "server/ask.h"
#include "server/owned.h"
#include "server/server.h"

#include "engine/async.h"
#include "engine/json_stream.h"
#include "engine/report.h"

struct rest {
	struct server *server;
	TAILQ_HEAD(, rest_call) calls;
	TAILQ_HEAD(, kept_run) kept;
	char *packages, *python; /* JSON, once somebody has asked what is installed */
};

struct rest_call {
	TAILQ_ENTRY(rest_call) entry;
	struct rest *rest;
	struct exchange *exchange;
	struct tenant *tenant;
	unsigned slots; /* of the tenant's runs, that it counts for */
	struct session_room room;
	struct ask ask;
	char session[EXECPY_SESSION_ID_MAX]; /* that it is about, or "" */
	/* What goes on for it. */
	struct run *run;
	const char *ran_as; /* for records: "session run"; NULL: not for a client's code */
	struct asking *asking;
	struct reporting *reporting;
	struct hold hold;
	/* What is sent: the stream, and what its parts point at. */
	struct json_stream stream;
	struct execpy_result *result;
	/* How the call's API says no; NULL: by problem details. Ends the response. */
	void (*refuse)(struct exchange *exchange, unsigned status, const char *text);
	/* Of a kind that embeds this at its beginning; or NULL. */
	void (*drained)(struct rest_call *call); /* the client takes more */
	void (*release)(struct rest_call *call); /* frees what is its own */
};

/* --- call.c ------------------------------------------------------------------------ */

/* The call of a request, of this size at least; NULL: it was answered. */
struct rest_call *rest_call_new(struct exchange *exchange, size_t size);
/* With all that goes on for it. NULL-safe. */
void rest_call_free(struct rest_call *call);
/* The body as one object, which the call owns; an empty body is an empty object where
 * `optional`. False when it was refused, and the call is gone. */
bool rest_read(struct rest_call *call, bool optional);
/* These answer, and the call is gone. */
void rest_problem(struct rest_call *call, unsigned status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void rest_fail(struct rest_call *call, const struct error *why);
void rest_done(struct rest_call *call); /* 204 */
/* What stands in the stream, which is one JSON text; at once or piece by piece. */
void rest_send(struct rest_call *call, unsigned status, const char *media_type);
/* What stands in the stream, behind a response that has begun; the call is gone then. */
void rest_send_rest(struct rest_call *call);
/* Begins what the call asks for, in call->run; answers when it cannot. */
void rest_begin(struct rest_call *call, const struct execpy_request *request,
		const struct async *async);
/* The call's run is over: counts it. False without a result, which was answered. */
bool rest_take_result(struct rest_call *call, struct execpy_result *result,
		      const struct error *why);
/* Sends more of a response that has begun, as much as the client takes now. True when
 * all of the stream is sent. */
bool rest_pump(struct exchange *exchange, struct json_stream *stream);
/* The status that says what a failure of the engine was about. */
unsigned rest_status(int number);

/* Counts one more run for the call's tenant. False when it was refused. */
bool rest_take_slot(struct rest_call *call);
/* What the tenant may ask for. */
struct ask_rules rest_rules(const struct tenant *tenant);
/* Into the numbers and the audit log. */
void rest_count(struct rest *rest, const struct tenant *tenant, const char *kind,
		const struct ask *ask, const struct execpy_result *result);
/* Ends a run whose client is gone, and counts what was known of it then. NULL-safe. */
void rest_abandon(struct rest *rest, const struct tenant *tenant, const char *kind,
		  const struct ask *ask, struct run *run);

/* --- request.c --------------------------------------------------------------------- */

/* A run as an object asks for it. */
struct rest_run {
	bool detach;
};
int rest_take_run(struct ask *ask, const json_t *object, const struct ask_rules *rules,
		  struct rest_run *ret_run, struct error *err);
/* The value of {id}, copied into call->session, when it names a session of the tenant's.
 * False when there is none, which was answered. */
bool rest_take_session(struct rest_call *call);

/* --- events.c: what a run tells while it goes on ---------------------------------- */

/* Server-sent events: `started`, `stdout`, `stderr`, `display`, `finding`, and at the end
 * `result`, or `problem`. */
struct events {
	struct rest_call *call;
	struct event *alive; /* a comment, when nothing else comes */
	bool begun;          /* the response */
	struct json_pieces outputs[2];
	size_t findings, displays; /* that were told of */
};

bool rest_wants_events(const struct exchange *exchange);
/* Fills what the run is to tell. */
int events_begin(struct events *events, struct rest_call *call, struct async *async,
		 struct error *err);
/* The last of them; call->result is sent, and the call is gone. */
void events_end(struct events *events);
void events_fail(struct events *events, const struct error *why);
void events_free(struct events *events);

/* --- kept.c: detached runs --------------------------------------------------------- */

/* Begins it; its request is taken over from the call. Answers, and the call is gone. */
void kept_begin(struct rest_call *call);
void kept_free(struct rest *rest);

/* --- the routes' handlers ---------------------------------------------------------- */

void rest_handle_run(struct exchange *exchange);
void rest_handle_session_run(struct exchange *exchange);
void rest_handle_check(struct exchange *exchange);
void rest_handle_probe(struct exchange *exchange);
void rest_handle_batch(struct exchange *exchange);
void rest_handle_info(struct exchange *exchange);
void rest_get_run(struct exchange *exchange); /* a detached one, as the next */
void rest_delete_run(struct exchange *exchange);
void rest_open_session(struct exchange *exchange);
void rest_list_sessions(struct exchange *exchange);
void rest_get_session(struct exchange *exchange);
void rest_end_session(struct exchange *exchange);
void rest_fork(struct exchange *exchange);
void rest_checkpoint(struct exchange *exchange);
void rest_drop_checkpoint(struct exchange *exchange);
void rest_rollback(struct exchange *exchange);
void rest_undo(struct exchange *exchange);
void rest_interrupt(struct exchange *exchange);
void rest_list_files(struct exchange *exchange);
void rest_get_file(struct exchange *exchange);
void rest_put_file(struct exchange *exchange);
void rest_delete_file(struct exchange *exchange);
void rest_get_tar(struct exchange *exchange);
void rest_put_tar(struct exchange *exchange);

#endif
