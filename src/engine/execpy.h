/* SPDX-License-Identifier: Apache-2.0 */
/* execpy.h: runs Python that a stranger wrote, and gives back everything that
 * happened. The public interface of libexecpy.
 *
 * One engine owns one warden process and serves any number of runs; it is not
 * thread-safe: use one engine a thread, or lock. Nothing here prints, and no
 * function ends the process. Strings are UTF-8 unless said otherwise. */
#ifndef EXECPY_H
#define EXECPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EXECPY_API __attribute__((visibility("default")))

/* What failed, on what, and why, in one line; number is a positive errno. */
struct execpy_error {
	int number;
	char text[320];
};

struct execpy_engine;
struct execpy_result;

struct execpy_options {
	/* Where execpy-warden, -keeper and -guest are. NULL: beside the running
	 * program in a build tree, else where they were installed. */
	const char *program_directory;
	/* There will be one run: its template does not wait for a second. */
	bool single_run;
	/* The daemon's socket. NULL: $EXECPY_SOCKET, which like this one must be
	 * there; else $XDG_RUNTIME_DIR/execpy.sock or /run/execpy.sock, if there. */
	const char *socket;
	bool no_daemon;   /* a warden of one's own, whatever is there */
	bool daemon_only; /* -ENOENT where there is no daemon */
	/* For a process that may not connect itself: gives a connection to a daemon, which
	 * the engine takes over, or a negative errno. Called again when it is lost; then it
	 * may take no more than a moment. Instead of `socket`. */
	int (*dial)(void *user);
	void *dial_user;
};

/* Starts an engine: connects it to a daemon, or starts a warden of its own. Returns 0, or a
 * negative errno with `error` filled. The engine is the caller's, to be closed. */
EXECPY_API int execpy_open(const struct execpy_options *options, struct execpy_engine **ret_engine,
			   struct execpy_error *error);
/* Ends all runs and the warden, and waits until nothing of them is left:
 * no process, no cgroup. NULL-safe. */
EXECPY_API void execpy_close(struct execpy_engine *engine);
/* How limits are enforced on this host: "v2", "v1" or "none"; and why not
 * better, or NULL. Owned by the engine. */
EXECPY_API const char *execpy_cgroup_mode(const struct execpy_engine *engine, const char **ret_why);

/* The limits of one run. 0 in a field means its default (docs/limits.md). */
struct execpy_limits {
	uint64_t time_ms;      /* wall clock, CLOCK_MONOTONIC */
	uint64_t cpu_ms;       /* user and system time of all its processes */
	uint64_t memory_bytes; /* its own; the template's shared pages are free */
	uint64_t processes;    /* and threads, together, at one moment */
	uint64_t output_bytes; /* stdout and stderr together; UINT64_MAX: no bytes */
	uint64_t disk_bytes;   /* /workspace, /tmp and /dev/shm together */
};

struct execpy_file {
	const char *name; /* in the workspace: relative, no "..", '/' between */
	int fd;           /* a regular file, read from its start; stays the caller's */
	bool executable;
};

struct execpy_request {
	const char *code; /* exactly these bytes are run; UTF-8 */
	size_t code_length;
	const char *const *arguments;   /* sys.argv[1:]; NULL-terminated, or NULL */
	const char *const *environment; /* NAME=VALUE; NULL-terminated, or NULL */
	int stdin_fd; /* read to its end and passed on; -1: empty. Stays the caller's */
	const struct execpy_file *files;
	size_t file_count;
	struct execpy_limits limits;
	const char *policy;   /* NULL: the default */
	const char *template; /* NULL or "auto": by the code's imports; "bare"; a name */
	bool truncate_output; /* keep head and tail instead of ending the run */
	bool return_files;    /* contents in the result */
	/* Of the longer side of each picture that is shown: a larger one is made smaller, if
	 * it can be, where it was made. 0: as they are. */
	uint32_t picture_pixels;
	int out_directory; /* -1, or where created files are written, beneath it */
};

enum execpy_stream { EXECPY_STDOUT = 1, EXECPY_STDERR = 2 };

struct execpy_callbacks {
	/* Output as it comes, also what truncation later drops. The bytes are the
	 * guest's own: anything at all. */
	void (*output)(void *user, enum execpy_stream stream, const void *data, size_t length);
	void *user;
};

/* Runs one piece of code to its end. Returns 0 with a result, whatever became
 * of the code; a failure of ours is a result with status internal_error. A
 * negative errno only for a request that is wrong in itself. May take as long
 * as limits.time_ms and the start of a template. */
EXECPY_API int execpy_run(struct execpy_engine *engine, const struct execpy_request *request,
			  const struct execpy_callbacks *callbacks,
			  struct execpy_result **ret_result, struct execpy_error *error);
/* The result of a request for which there is no engine: internal_error with the
 * reason that execpy_open() gave. For clients that always answer with a result. */
EXECPY_API int execpy_failure(const struct execpy_request *request,
			      const struct execpy_error *reason, struct execpy_result **ret_result);

/* The verdict only: the code is verified in a fresh cell and never run. The
 * result's status is ok or blocked (or a failure of ours); callbacks are not
 * called. Otherwise as execpy_run(). */
EXECPY_API int execpy_check(struct execpy_engine *engine, const struct execpy_request *request,
			    struct execpy_result **ret_result, struct execpy_error *error);
/* One of many codes. */
struct execpy_code {
	const char *code;
	size_t code_length;
};

/* The verdicts on many codes, told one by one in their order, each as by
 * execpy_check() with the request's other fields (its own code is not looked at).
 * A few cells work side by side, and each judges several, one after another:
 * nothing of them is ever run. A code with which its cell ends is judged again in
 * a fresh one, and only what happens there counts for its verdict. The result is
 * the receiver's. */
EXECPY_API int execpy_check_many(struct execpy_engine *engine, const struct execpy_request *request,
				 const struct execpy_code *codes, size_t count,
				 void (*tell)(void *user, size_t index,
					      struct execpy_result *result),
				 void *user, struct execpy_error *error);
/* A dry run: the verdict, and if it allows the code, a run in a throw-away cell
 * with at most 1 s and 50 MiB, of which everything is discarded but the record
 * of what it did: execpy_result_check_json(). */
EXECPY_API int execpy_probe(struct execpy_engine *engine, const struct execpy_request *request,
			    struct execpy_result **ret_result, struct execpy_error *error);
/* Ends the run that execpy_run() is in; may be called from a signal handler. */
EXECPY_API void execpy_cancel(struct execpy_engine *engine);

/* --- sessions ---------------------------------------------------------------
 *
 * A session is a cell that stays: variables, imports, files live on from run to
 * run, and survive a run that crashes or reaches a limit. With a daemon it outlives
 * the engine that opened it, and is named by its id, which cannot be guessed; an
 * engine with a warden of its own takes its sessions with it. All calls may fail
 * with -ENOENT (no such session) or -EIDRM (it has ended; the text says why). */

#define EXECPY_SESSION_ID_MAX          40 /* with its NUL */
#define EXECPY_SESSION_NAME_MAX        64 /* of a checkpoint, with its NUL */
#define EXECPY_SESSION_CHECKPOINTS_MAX 8

struct execpy_session_options {
	/* memory, processes and disk hold for the session, the others for each run
	 * that does not bring its own */
	struct execpy_limits limits;
	const char *policy;        /* of runs that name none; NULL: the default */
	const char *template;      /* as of a run; "auto" means "bare" here */
	uint64_t idle_ms, life_ms; /* it ends after; 0: as the daemon is configured */
};

struct execpy_session_info {
	char id[EXECPY_SESSION_ID_MAX];
	char template[64];
	struct execpy_limits limits;
	uint64_t runs; /* that were begun */
	uint64_t age_ms, unused_ms;
	uint64_t idle_ms, life_ms; /* when it ends; 0: never */
	uint64_t memory_bytes;     /* of its own, with its checkpoints */
	bool busy;                 /* a run goes on */
	char ended[320];           /* why it ended, or "" */
	size_t checkpoint_count;
	char checkpoints[EXECPY_SESSION_CHECKPOINTS_MAX][EXECPY_SESSION_NAME_MAX];
	char lost[1024]; /* by a rollback or undo, a line each, or "" */
};

EXECPY_API int execpy_session_open(struct execpy_engine *engine,
				   const struct execpy_session_options *options,
				   struct execpy_session_info *ret_info,
				   struct execpy_error *error);
/* As execpy_run(), in a session; waits for the runs before it. The result says under
 * "session" whether the session went on from its checkpoint, and what that lost.
 * What a run created, changed and deleted is told by comparison with the run before.
 * The request's template, and its memory, processes and disk, are not looked at. */
EXECPY_API int execpy_session_run(struct execpy_engine *engine, const char *id,
				  const struct execpy_request *request,
				  const struct execpy_callbacks *callbacks,
				  struct execpy_result **ret_result, struct execpy_error *error);
/* What the session is like; of one that has ended, why. */
EXECPY_API int execpy_session_info(struct execpy_engine *engine, const char *id,
				   struct execpy_session_info *ret_info,
				   struct execpy_error *error);
/* Tells of each that lives. */
EXECPY_API int execpy_session_list(struct execpy_engine *engine,
				   void (*tell)(void *user, const struct execpy_session_info *info),
				   void *user, struct execpy_error *error);
/* Keeps variables and workspace under a name (1 to 63 bytes), replacing one of the
 * same name. -EINVAL when none can be made: while threads run, say. -EBUSY, as of the
 * next three, while a run goes on. ret_info may be NULL. */
EXECPY_API int execpy_session_checkpoint(struct execpy_engine *engine, const char *id,
					 const char *name, struct execpy_session_info *ret_info,
					 struct execpy_error *error);
/* Returns variables and workspace to a checkpoint, which stays. */
EXECPY_API int execpy_session_rollback(struct execpy_engine *engine, const char *id,
				       const char *name, struct execpy_session_info *ret_info,
				       struct execpy_error *error);
/* Returns to before the last run; once. -EINVAL when there is nothing to undo. The
 * files of a workspace of more than 8 MiB stay as they are; ret_info->lost says so. */
EXECPY_API int execpy_session_undo(struct execpy_engine *engine, const char *id,
				   struct execpy_session_info *ret_info,
				   struct execpy_error *error);
EXECPY_API int execpy_session_drop(struct execpy_engine *engine, const char *id, const char *name,
				   struct execpy_session_info *ret_info,
				   struct execpy_error *error);
/* Makes `count` (1 to 128) sessions of one that is idle, which goes on untouched, and
 * tells of each. They have its variables, files in /workspace, /tmp and /dev/shm, open
 * files, limits and run numbers, but processes, memory and places of their own: none of
 * them sees or changes another one again. Named checkpoints and what could be undone stay
 * with the session. They draw different random numbers from `random` and numpy.random,
 * or with same_random the same ones. All of them or none: -EINVAL when that is impossible
 * (threads run, a socket is open; the text says what), -EBUSY while a run goes on, or
 * beyond the number of sessions that the daemon allows. */
EXECPY_API int execpy_session_fork(struct execpy_engine *engine, const char *id, unsigned count,
				   bool same_random,
				   void (*tell)(void *user, const struct execpy_session_info *info),
				   void *user, struct execpy_error *error);
/* A run that goes on gets KeyboardInterrupt; half a second later it is killed, and
 * the session goes on from its checkpoint. -EINVAL when there is none. */
EXECPY_API int execpy_session_interrupt(struct execpy_engine *engine, const char *id,
					struct execpy_error *error);
EXECPY_API int execpy_session_end(struct execpy_engine *engine, const char *id,
				  struct execpy_error *error);

/* Files of the workspace. Names are relative, without ".."; links are never
 * followed. Each call waits for a run that goes on. */

struct execpy_session_file {
	const char *path; /* raw bytes, terminated */
	uint64_t size;
	int64_t modified_ns;  /* since the epoch */
	bool directory, link; /* neither: a regular file, or what is told by `other` */
	bool other;           /* a FIFO, a socket … */
};

EXECPY_API int execpy_session_files(struct execpy_engine *engine, const char *id,
				    void (*tell)(void *user,
						 const struct execpy_session_file *file),
				    void *user, struct execpy_error *error);
/* Creates or replaces; directories on the way are made. -ENOSPC beyond the session's
 * disk. */
EXECPY_API int execpy_session_put(struct execpy_engine *engine, const char *id,
				  const struct execpy_file *file, struct execpy_error *error);
/* Writes the content to `fd`, of which the caller keeps the ownership. */
EXECPY_API int execpy_session_get(struct execpy_engine *engine, const char *id, const char *name,
				  int fd, struct execpy_error *error);
/* A file, a link, or an empty directory. */
EXECPY_API int execpy_session_delete(struct execpy_engine *engine, const char *id, const char *name,
				     struct execpy_error *error);
/* -EEXIST when `to` is there. */
EXECPY_API int execpy_session_rename(struct execpy_engine *engine, const char *id, const char *from,
				     const char *to, struct execpy_error *error);
/* The workspace as a tar archive (ustar with PAX names) to or from a descriptor.
 * Coming in, regular files and directories are made; what is anything else, leaves
 * the workspace, or is beyond the disk is refused, and the error names it: what came
 * before it stays. */
EXECPY_API int execpy_session_tar_out(struct execpy_engine *engine, const char *id, int fd,
				      struct execpy_error *error);
EXECPY_API int execpy_session_tar_in(struct execpy_engine *engine, const char *id, int fd,
				     struct execpy_error *error);

enum execpy_status {
	EXECPY_OK,
	EXECPY_ERROR,
	EXECPY_BLOCKED,
	EXECPY_ANOMALY,
	EXECPY_TIMEOUT,
	EXECPY_CPU_LIMIT,
	EXECPY_MEMORY_LIMIT,
	EXECPY_OUTPUT_LIMIT,
	EXECPY_DISK_LIMIT,
	EXECPY_CRASHED,
	EXECPY_CANCELLED,
	EXECPY_INTERNAL_ERROR,
};

EXECPY_API enum execpy_status execpy_result_status(const struct execpy_result *result);
EXECPY_API const char *execpy_status_name(enum execpy_status status); /* "memory_limit" */
/* The code's exit status, or -1; the signal that ended it, or 0. */
EXECPY_API int execpy_result_exit_code(const struct execpy_result *result);
EXECPY_API int execpy_result_signal(const struct execpy_result *result);
/* For a person: one line on why it did not end well, or NULL. */
EXECPY_API const char *execpy_result_reason(const struct execpy_result *result);
/* For a person: several lines that show the place in the code, the reason and
 * what to do about it; NULL when all is well. Owned by the result. */
EXECPY_API const char *execpy_result_explanation(struct execpy_result *result);

/* Of a run in a session: its number there, from 1, and whether the session went on
 * from its checkpoint. *ret_lost: what that cost, a line each; NULL: nothing. Owned by
 * the result. 0 when it was in none. */
EXECPY_API uint64_t execpy_result_session_run(struct execpy_result *result, bool *ret_restored,
					      const char **ret_lost);

/* How many things the run displayed: figures, and what it gave to display(). */
EXECPY_API size_t execpy_result_displays(const struct execpy_result *result);
/* The content of one MIME type ("text/plain", "image/png" …) of a display, from 0, or
 * of the last expression's value, which is -1: the guest's own bytes, a picture's not
 * in base64. False when there is none. Owned by the result. */
EXECPY_API bool execpy_result_bundle(const struct execpy_result *result, int index,
				     const char *mime, const void **ret_data, size_t *ret_length);

/* One entry of the workspace that the run created or changed. */
struct execpy_artifact {
	const char *path;    /* printable */
	const char *refused; /* why it was not handed out, or NULL */
	bool failed;         /* that was our failure: a full disk, say */
	uint64_t size;
	const char *sha256; /* "" when refused */
};

/* The nth, from 0; false when there are no more. Owned by the result. */
EXECPY_API bool execpy_result_artifact(const struct execpy_result *result, size_t index,
				       struct execpy_artifact *ret_artifact);

/* One finding of the verifier. Lines and columns count from 1, columns in code
 * points; 0: about no place. The end is behind the last character. */
struct execpy_finding {
	const char *rule, *severity, *message, *hint; /* hint may be "" */
	unsigned line, column, end_line, end_column;
};

/* The findings, by line; owned by the result. Returns their number. */
EXECPY_API size_t execpy_result_findings(struct execpy_result *result,
					 const struct execpy_finding **ret_findings);
/* The line of the code that a finding is about, without its newline; NULL when
 * there is none. Not terminated. */
EXECPY_API const char *execpy_result_line(const struct execpy_result *result, unsigned line,
					  size_t *ret_length);

/* The result object (docs/result.schema.json) as UTF-8 JSON, one line. Owned by
 * the result. NULL when memory is out. */
EXECPY_API const char *execpy_result_json(struct execpy_result *result, size_t *ret_length);
/* {"decision", "findings"} of a check, and for a probe also what was seen:
 * "status", "exit_code", "error", "anomaly", "imports", "files_read",
 * "files_written", "processes", "sockets", "native", "system_calls", "usage",
 * "samples". Owned by the result; one of the two JSON texts a result. */
EXECPY_API const char *execpy_result_check_json(struct execpy_result *result, size_t *ret_length);
/* The same of a dry run for a person, a line for each thing that was seen. */
EXECPY_API const char *execpy_result_probe_text(struct execpy_result *result, size_t *ret_length);
EXECPY_API void execpy_result_free(struct execpy_result *result); /* NULL-safe */

EXECPY_API const char *execpy_version(void);

#ifdef __cplusplus
}
#endif

#endif
