/* SPDX-License-Identifier: Apache-2.0 */
/* e2b: what the files of the code interpreter's API share.
 *
 * A context is a session of the engine, with a working directory. Whoever asks for
 * something of one waits until it is ready: until its session is open, and after a
 * restart until there is another. */
#ifndef EXECPY_SERVER_COMPAT_E2B_H
#define EXECPY_SERVER_COMPAT_E2B_H

#include "server/compat/compat.h"

#include <sys/queue.h>

struct e2b_context;

struct e2b_call {
	struct rest_call call;
	TAILQ_ENTRY(e2b_call) entry;
	struct e2b_context *awaited;
	/* It is ready; or NULL: it is none any more, and why. */
	void (*ready)(struct e2b_call *call, struct e2b_context *context, const struct error *why);
};

/* What goes on with a context, one after the other. */
enum e2b_step {
	E2B_COUNT,     /* which of the tenant's sessions live */
	E2B_INTERRUPT, /* the run that goes on */
	E2B_SAVE,      /* the workspace */
	E2B_END,       /* the session */
	E2B_OPEN,
	E2B_RESTORE, /* the workspace */
	E2B_ENTER,   /* the working directory */
	E2B_READY,
};

struct e2b_context {
	TAILQ_ENTRY(e2b_context) entry;
	struct compat *compat;
	struct tenant *tenant;
	char id[EXECPY_SESSION_ID_MAX];      /* that of its first session */
	char session[EXECPY_SESSION_ID_MAX]; /* "": none now */
	char cwd[COMPAT_CWD_BYTES_MAX + 16]; /* with what stands for the other's home */
	bool is_default;                     /* of those who name none */
	bool told;                           /* somebody knows it */
	bool renewed; /* its session had ended by itself: who runs next is told */
	bool closing; /* nobody can name it any more */
	bool plain;   /* there is no template with libraries */
	uint64_t executions;
	struct limits limits;
	const char *policy;
	struct session_room room; /* until its session is there */
	enum e2b_step step;
	struct asking *asking; /* of the step, as the next three */
	struct run *run;
	struct hold hold;
	struct ask ask;
	int archive; /* the workspace, while a restart goes on; -1: none */
	TAILQ_HEAD(, e2b_call) waiting;
};

struct compat {
	struct server *server;
	TAILQ_HEAD(, e2b_context) contexts; /* the one used longest ago is the first */
};

/* --- e2b_context.c: their life ------------------------------------------------------ */

/* The state of this API, made when it is first asked for; NULL when memory is out. */
struct compat *e2b_state(struct server *server);
struct e2b_context *e2b_find(struct compat *compat, const struct tenant *tenant, const char *id);
/* The one of those who name none; NULL: there is none yet. */
struct e2b_context *e2b_default(struct compat *compat, const struct tenant *tenant);
/* A new one for the call's tenant. e2b_begin() begins to open it, and may end it at once:
 * first is whoever awaits it. */
struct e2b_context *e2b_new(struct compat *compat, struct rest_call *call, const char *cwd,
			    bool is_default);
void e2b_begin(struct e2b_context *context);
/* Calls call->ready(), at once or later. */
void e2b_await(struct e2b_call *call, struct e2b_context *context);
/* The same context with a new session and the same files. */
void e2b_restart(struct e2b_context *context);
/* Its session has ended by itself: a new one. */
void e2b_renew(struct e2b_context *context);
/* Ends it; who awaits it is told then. */
void e2b_close(struct e2b_context *context);
/* Forgets it at once. */
void e2b_forget(struct e2b_context *context);

/* --- e2b_lines.c: what is told of an execution -------------------------------------- */

/* Each appends one line of JSON. */
void e2b_write_type(struct bytes *out, const char *type);
void e2b_write_count(struct bytes *out, uint64_t count);
void e2b_write_error(struct bytes *out, struct execpy_result *result);
void e2b_write_failure(struct bytes *out, const struct error *why);
void e2b_write_result(struct bytes *out, struct span bundle, bool is_value);

/* --- e2b_execute.c ------------------------------------------------------------------ */

void e2b_handle_execute(struct exchange *exchange);

/* --- e2b.c --------------------------------------------------------------------------- */

struct e2b_call *e2b_call_new(struct exchange *exchange, size_t size);
/* Nobody waits any more: for the release() of a kind that has one of its own. */
void e2b_release(struct rest_call *call);
/* Answers, and the call is gone. */
void e2b_fail(struct rest_call *call, const struct error *why);
/* Python by one of its names, or nothing. */
int e2b_take_language(const json_t *object, const char **ret_language, struct error *err);

#endif
