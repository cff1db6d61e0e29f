/* SPDX-License-Identifier: Apache-2.0 */
/* engine: what the files of libexecpy share. */
#ifndef EXECPY_ENGINE_ENGINE_H
#define EXECPY_ENGINE_ENGINE_H

#include "base/bounds.h"
#include "base/bytes.h"
#include "base/error.h"
#include "engine/collect.h"
#include "engine/execpy.h"
#include "policy/finding.h"
#include "policy/limits.h"
#include "policy/policy.h"
#include "proto/frame.h"
#include "proto/mailbox.h"
#include "proto/messages.h"

#include <event2/event.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/types.h>

_Static_assert(sizeof(struct execpy_error) == sizeof(struct error) &&
		       offsetof(struct execpy_error, text) == offsetof(struct error, text),
	       "the public error object is the internal one");

struct execpy_engine {
	struct event_base *base;
	pid_t warden;
	int socket;
	struct event *socket_event, *cancel_event;
	int cancel_fd; /* eventfd, written by execpy_cancel() */
	struct bytes buffer;
	bool ready, dead, single_run;
	bool remote; /* a daemon's warden: it serves others, too */
	char *socket_path;
	int (*dial)(void *user); /* instead of a path */
	void *dial_user;
	char why[ERROR_TEXT_MAX]; /* it is dead */
	char cgroup_mode[8], cgroup_why[200];
	uint64_t next_run;
	unsigned asides; /* runs that threads have */
	TAILQ_HEAD(, run) runs;
	TAILQ_HEAD(, query) queries;
	TAILQ_HEAD(, known_session) known; /* the one used longest ago is the first */
	size_t known_count;
};

/* A question to the warden that one message answers. */
struct query {
	TAILQ_ENTRY(query) entry;
	uint64_t id;
	bool answered;
	struct bytes answer; /* the fields of MESSAGE_SESSION */
	struct error failed;
	struct event *event; /* made active when it is answered, or the warden is gone */
};

/* What runs in a session take from it when they bring nothing of their own. */
struct known_session {
	TAILQ_ENTRY(known_session) entry;
	char id[EXECPY_SESSION_ID_MAX];
	struct limits limits;
	struct bytes policy; /* as policy_encode() wrote it */
};

/* What was in a workspace when a run of a session was over: by comparison the next
 * tells what it changed. The warden keeps it for whichever engine runs next. */
struct listed {
	char *name;
	uint64_t size, inode;
	int64_t changed_ns;
	char sha256[65]; /* "": it was refused */
	bool seen;
};

struct listing {
	struct listed *files;
	size_t count;
};

/* What was captured of one stream. Over a limit with truncation the head and
 * the tail are kept. */
struct capture {
	struct bytes head, tail; /* tail: a ring once it is full */
	size_t tail_at;
	uint64_t total, dropped;
	char gap[64]; /* the line on what is missing, once it was asked for */
};

struct collected_file {
	char *path; /* as shown: control characters escaped */
	const char *media_type;
	uint64_t size;
	char sha256[65];
	char *refused;
	bool failed;
	struct bytes content; /* when asked for */
	bool changed;         /* in a session: it was there before */
};

struct execpy_result {
	char id[40];
	enum execpy_status status;
	int exit_code, signal; /* -1, 0: none */
	struct capture output[2];
	struct bytes response, frames; /* the cell's own words */
	struct span value;             /* bodies of frames in `response`; empty: none */
	struct span error;
	struct span *displays;
	size_t display_count;
	struct collected_file *files;
	size_t file_count;
	char *files_cut;
	char *anomaly_event, *anomaly_detail;
	struct bytes notes; /* what the watch only reported: one a line */
	char internal[ERROR_TEXT_MAX];
	char reason[ERROR_TEXT_MAX];
	struct limits limits;
	struct verdict verdict;
	bool has_verdict, fenced;
	uint32_t fence_line;
	uint64_t anomaly_line;
	bool check_only, probe;
	struct bytes samples; /* 24 bytes each, as the warden sent them */
	char *policy, *template;
	struct bytes code; /* for the source of frames at a limit */
	bool warm;
	uint64_t wall_us, cpu_us, memory_peak_bytes, processes_peak;
	uint64_t wait_us, verify_us, total_us;
	struct bytes json, explanation, probe_text;
	bool json_made;
	struct execpy_finding *findings;     /* the public view of the verdict */
	char session[EXECPY_SESSION_ID_MAX]; /* "": none */
	uint64_t session_run;
	bool restored;
	struct bytes lost; /* one a line, terminated when it is asked for */
	char **deleted;    /* printable paths */
	size_t deleted_count;
};

/* Codes that are checked in the same cell behind the run's own. */
struct batch {
	struct execpy_result *results[BATCH_CODES_MAX];
	size_t count;
	size_t judged; /* how many got their verdict */
};

enum run_state { RUN_LOOKING, RUN_ACQUIRING, RUN_RUNNING, RUN_DRAINING, RUN_ASIDE, RUN_DONE };

struct run {
	struct execpy_engine *engine;
	TAILQ_ENTRY(run) entry;
	uint64_t id;
	enum run_state state;
	const struct execpy_request *request;
	struct execpy_callbacks callbacks;
	struct execpy_result *result;
	struct batch *batch; /* or NULL */
	int mailbox, verdict, workspace, streams[3];
	struct deadline deadline; /* until when its files are looked at, or its hold is in use */
	struct aside *aside;      /* of run_collect.c, or NULL: a thread has it */
	uint64_t returned_bytes;  /* of their contents so far */
	struct event *stream_events[3], *source_event, *patience;
	struct bytes stdin_pending;
	size_t stdin_at;
	bool stdin_ended, kill_sent, ended, cancelled;
	enum ending ending;
	uint64_t reason;
	int status;
	bool has_status, disk_full, sampled, retried;
	bool refused; /* by the daemon: the request is wrong */
	int refused_for;
	int64_t began_us, output_us; /* of the last output that was read */
	struct input *inputs;
	size_t input_count;
	struct policy policy;
	const struct known_session *session; /* or NULL; looked at while it begins */
	struct query query;                  /* of what is not known of the session yet */
	struct hold *hold;                   /* instead of code */
	struct listing before, after;
	bool listed;                /* `after` is whole */
	bool paused;                /* its output is not read */
	struct ending_watch *watch; /* of async.c, or NULL: somebody waits for it */
	struct run_shown *shown;    /* of run_show.c, or NULL: nobody is told */
};

/* Something to be done with a session's workspace while no run goes on. */
struct hold {
	int (*use)(void *user, int workspace, const struct deadline *deadline, struct error *err);
	void *user;
	bool changes;        /* what is there afterwards is not a run's doing */
	bool apart;          /* it may take long: not in the loop of many (async.h) */
	struct error failed; /* what came of it; EPIPE without a text: nothing did */
};

/* A file that was put in, to tell later whether it changed. */
struct input {
	char *name;
	char sha256[65];
};

/* remote.c */
#define REMOTE_PATH_MAX 108 /* of struct sockaddr_un, its NUL included */
/* The socket that the caller, or else the environment, names; or NULL. */
const char *remote_named(const char *given);
/* Connects to the daemon at `named`, or, when that is NULL, where one would be:
 * a descriptor, and the path. */
int remote_dial(const char *named, char ret_path[REMOTE_PATH_MAX], struct error *err);
/* Connects to the daemon, if there is one: 1, or 0 when there is none. */
int remote_connect(struct execpy_engine *engine, const struct execpy_options *options,
		   struct error *err);

/* spawn.c */
/* Starts a warden. The process, which the caller waits for, ends when all of it
 * is gone; the socket is the caller's. `identity`: what it becomes when it is started as
 * root; 0: an id of its own. */
int spawn_warden_process(const char *program_directory, uid_t identity, pid_t *ret_pid,
			 int *ret_socket, struct error *err);
int spawn_warden(struct execpy_engine *engine, const struct execpy_options *options,
		 struct error *err);

/* run_ask.c */
/* Asks for the run's cell, anew when it was refused one. Negative: the request is
 * wrong; a warden that is gone fails the run, not the request. */
int run_ask(struct run *run, struct error *err);
/* Its files are in the workspace: hands over what it is to do. */
int run_ask_start(struct run *run, struct error *err);

/* run_collect.c */
/* Nothing of the cell acts any more, or it is held: looks at what is in the workspace, or
 * does what the hold is for. run_finish() follows, at once or from the loop. */
void run_collect(struct run *run);
/* What a thread does of it is ended, which may take a piece of a file. */
void run_collect_stop(struct run *run);

/* run.c */
/* What to do with a request beside running it. */
struct run_purpose {
	bool check_only, probe;
	struct batch *batch;
	const char *session; /* its id, or NULL */
	struct hold *hold;
};
/* Asks for a cell; several runs may be under way. The request must stay. NULL when
 * it is wrong in itself. */
struct run *run_start(struct execpy_engine *engine, const struct execpy_request *request,
		      const struct execpy_callbacks *callbacks, const struct run_purpose *purpose,
		      struct error *err);
/* Waits for its end, and frees it. The result is the caller's. */
int run_wait(struct run *run, struct execpy_result **ret_result, struct error *err);
void run_make_id(char id[40]);
void run_message(struct run *run, const struct frame *frame, int *fds, size_t count);
void run_engine_died(struct run *run);
void run_cancel(struct run *run);
/* Reads no more of its output, and reads again. */
void run_pause(struct run *run);
void run_resume(struct run *run);
/* It is done, and not by the doing of its code: why. */
void run_fail(struct run *run, const char *why);
/* It is done, and all that there will be of it is in its result. */
void run_finish(struct run *run);
void run_free(struct run *run);
/* async.c: its cell is there; it is done, which is told from the loop. */
void async_note_start(struct run *run);
void async_note_end(struct run *run);

/* run_show.c */
/* Who is told what a run shows before it is over: findings once they are found, and
 * the bodies of displays. What is told is the first of each that the result will have. */
struct run_showing {
	void (*finding)(void *user, const struct finding *finding);
	void (*display)(void *user, struct span bundle);
};
/* Looks at its mailbox from time to time, and when output was told. A run that cannot
 * be looked at is told about at its end only. */
void run_show(struct run *run, const struct run_showing *showing, void *user);
void run_show_now(struct run *run);
void run_show_end(struct run *run);
/* A daemon that is gone may be there again: connects anew. Negative when it is
 * not, and then engine->why says so. */
int engine_revive(struct execpy_engine *engine, struct error *err);
int engine_say(struct execpy_engine *engine, const struct bytes *frame, const int *fds,
	       size_t count, struct error *err);

/* session.c */
/* What the warden said to a query that waits for it. */
bool query_message(struct execpy_engine *engine, const struct frame *frame);
/* Sends it; the query, whose event must be made, is then in the engine's list. */
int query_send(struct execpy_engine *engine, struct query *query, const struct bytes *frame,
	       struct error *err);
/* Takes it from the list: what came of it. The answer is still to be freed. */
int query_end(struct execpy_engine *engine, struct query *query, struct error *err);

/* What the warden may be asked about sessions (async.h). */
struct session_question {
	enum {
		SESSION_ASK_OPEN,
		SESSION_ASK_INFO,
		SESSION_ASK_LIST, /* all of a daemon, or as many as fit into a message */
		SESSION_ASK_EACH, /* of some: those of them that live */
		SESSION_ASK_ACT,
	} kind;
	const char *id;                           /* of INFO and ACT */
	const char (*ids)[EXECPY_SESSION_ID_MAX]; /* of EACH */
	size_t id_count;
	enum session_action action;                   /* of ACT */
	const char *name;                             /* of the checkpoint that it is about */
	unsigned count;                               /* of FORK: of branches, and whether they */
	bool same_random;                             /* draw the same random numbers */
	const struct execpy_session_options *options; /* of OPEN */
};
/* Sends it. */
int session_ask(struct execpy_engine *engine, const struct session_question *question,
		struct query *query, struct error *err);
/* The first session of an answer, and what a return to a checkpoint lost. `known`, if it
 * is not NULL, gets what runs take from it. -ENOENT when there is none. */
struct known_session;
int session_read_answer(const struct query *query, struct execpy_session_info *ret_info,
			struct known_session *known, struct error *err);
/* The next of an answer's sessions; false when there is none. */
bool session_next(struct reader *fields, struct execpy_session_info *ret_info);
/* The template that options mean by this name. */
const char *session_template(const char *asked);
void sessions_forget(struct execpy_engine *engine);
/* The session of this id, or NULL when it is not known yet; then what the warden said
 * about it: NULL and err when there is none any more. */
const struct known_session *session_find(struct execpy_engine *engine, const char *id);
const struct known_session *session_learn(struct execpy_engine *engine, const char *id,
					  const struct query *query, struct error *err);
/* It may be another's by now, or nobody's: it is asked for again next time. */
void session_forget(struct execpy_engine *engine, const char *id);

/* session_files.c */
/* Has the session's workspace used when it is its turn: what came of that. */
int session_hold(struct execpy_engine *engine, const char *id, struct hold *hold,
		 struct error *err);
/* What may be done with a workspace that is held: its files are told, and one is read. */
struct workspace_list {
	void (*tell)(void *user, const struct execpy_session_file *file);
	void *user;
	unsigned entries;
	char path[FILE_NAME_BYTES_MAX + 1];
};
int workspace_list(void *list, int workspace, const struct deadline *deadline, struct error *err);
struct workspace_get {
	const char *name; /* that request_check_name() has passed */
	int fd;
	uint64_t most; /* -EFBIG when it is larger; 0: any size */
};
int workspace_get(void *get, int workspace, const struct deadline *deadline, struct error *err);
/* One is opened for reading. What is in it may change later: it is never to be mapped. */
struct workspace_file {
	const char *name; /* that request_check_name() has passed */
	int fd;           /* the receiver's */
	uint64_t size;    /* when it was opened */
};
int workspace_open_file(void *file, int workspace, const struct deadline *deadline,
			struct error *err);
/* These change it. A struct execpy_file, a name that was checked, and the descriptor of an
 * archive, which is read here and written by the last. */
int workspace_put(void *file, int workspace, const struct deadline *deadline, struct error *err);
int workspace_delete(void *name, int workspace, const struct deadline *deadline, struct error *err);
int workspace_tar_in(void *fd, int workspace, const struct deadline *deadline, struct error *err);
int workspace_tar_out(void *fd, int workspace, const struct deadline *deadline,
		      struct error *err); /* changes nothing */

/* listing.c */
/* -EBADMSG when it is not what listing_write() writes. An empty one is no error. */
int listing_read(int fd, struct listing *ret_listing, struct error *err);
/* A memfd of it. */
int listing_write(const struct listing *listing, struct error *err);
void listing_add(struct listing *listing, const char *name, const struct stat *info,
		 const char *sha256);
/* Whether one says the same as another that was read. */
bool listing_is(const struct listing *listing, const struct listing *other);
struct listed *listing_find(const struct listing *listing, const char *name);
void listing_free(struct listing *listing);

/* request.c */
/* Checks the run's request and takes over what is needed of it: limits, code,
 * policy, hashes of the files. Negative: the request is wrong. */
int request_take(struct run *run, struct error *err);
/* The limits that were asked for, a session's or the defaults where none was: 0 asks
 * for none, UINT64_MAX for no limit where one may be off. */
int request_limits(const struct execpy_limits *asked, const struct known_session *session,
		   struct limits *ret_limits, struct error *err);
/* A name in the workspace: relative, and staying there. */
int request_check_name(const char *name, struct error *err);
/* Copies a code, without the Markdown fence that may be around it. */
int request_take_code(struct execpy_result *result, struct span code, struct error *err);

/* capture.c */
/* Keeps what the limit allows; returns how many of the bytes are within it. */
size_t capture_add(struct capture streams[2], int which, const void *data, size_t length,
		   uint64_t limit, bool truncate);
/* The text to show: head, a line on what is missing, tail. */
void capture_text(struct capture *capture, struct bytes *out);
/* The same, where it stands: the spans are empty before, and good until more comes. */
#define CAPTURE_SPANS_MAX 4
void capture_spans(struct capture *capture, struct span spans[CAPTURE_SPANS_MAX]);
void capture_free(struct capture *capture);

/* imports.c */
/* The modules that a template should load for this code, most general first;
 * calls add() for each. A guess from the text: what it misses is imported in
 * the cell as usual. */
void imports_scan(struct span code, void (*add)(void *user, const char *module), void *user);

/* The modules of a template with a name; false when there is none of this name. */
bool imports_template(const char *name, void (*add)(void *user, const char *module), void *user);

/* inputs.c */
/* Puts the request's files into the workspace, before any user code runs. */
int inputs_put_one(int workspace, const struct execpy_file *file, bool replace,
		   const struct deadline *deadline, struct error *err);
int inputs_put(struct run *run, struct error *err);

/* files.c */
int files_hash(int fd, char ret_hex[65], struct error *err);
void files_hash_bytes(struct span data, char ret_hex[65]);
void files_add(struct run *run, const char *name, uint64_t size, int fd, const char *reason);
/* In a session: what the run before left and is not there any more. */
void files_add_deleted(struct run *run);
/* Of those that were added: they are looked at anew. */
void files_forget(struct run *run);
/* By path, so that results can be compared. */
void files_sort(struct execpy_result *result);
void files_free(struct execpy_result *result);
const char *files_media_type(const char *path);

/* result.c */
void result_finish(struct run *run);
void result_index(struct execpy_result *result);
/* What went wrong in three texts: its type, a sentence with what to do about it, and the
 * traceback or what stands for it. False when all is well. */
struct result_error {
	struct bytes type, message, traceback;
};
bool result_error(struct execpy_result *result, struct result_error *ret_error);
void result_error_free(struct result_error *error);
/* That of a limit or the like, or NULL. */
const char *result_limit_type(enum execpy_status status);
/* The parts of the result object that others write, too. */
struct json;
void result_write(struct execpy_result *result, struct json *json); /* the whole object */
uint64_t result_bytes(const struct execpy_result *result);          /* that it holds */
void result_write_findings(struct execpy_result *result, struct json *json);
/* The nth of them; false when there are no more. */
bool result_write_finding_at(struct execpy_result *result, size_t index, struct json *json);
void result_write_finding(struct json *json, const struct finding *finding);
/* Tells of each type once that the body of a MESSAGE_DISPLAY or MESSAGE_VALUE has; how
 * many there are. The types' names are plain ASCII; the data are the guest's own bytes. */
size_t result_each_datum(struct span body,
			 void (*tell)(void *user, const char *mime, struct span data), void *user);
bool result_is_text(const char *mime); /* else it is shown as base64 */
/* Such a body as {mime: content}. */
void result_write_bundle(struct json *json, struct span body);
void result_write_end(struct execpy_result *result, struct json *json);
bool result_find_field(struct span body, enum field_name name, struct field *ret_field);
uint64_t result_number_field(struct span body, enum field_name name); /* 0: none */
/* The body of the frames that were written at a limit, if any; the list of its
 * FIELD_FRAMEs, innermost first; and the innermost line of the code itself. */
struct span result_stop_frames(const struct execpy_result *result);
size_t result_frame_list(struct span body, struct span list[TRACEBACK_FRAMES_MAX]);
uint64_t result_stop_line(const struct execpy_result *result);
/* Line `number` of the code, from 1, without its newline. */
/* What the code is called in its frames: "main.py" or "<run 3>". */
void result_file_name(const struct execpy_result *result, char name[32]);
bool result_is_own_file(const struct execpy_result *result, struct span file);
struct span result_code_line(const struct execpy_result *result, uint64_t number);
/* What a model can do about a status; NULL when there is nothing to do. */
const char *result_hint(enum execpy_status status);
/* A refusal as CPython would print a SyntaxError: line, carets, message. */
void result_refusal_text(const struct execpy_result *result, const struct finding *finding,
			 struct bytes *out);

/* result_model.c */
/* The result as a model reads it: UTF-8, at most `limit` bytes, which must be 4 KiB at
 * least. The other is about a check. */
void result_model_text(struct execpy_result *result, size_t limit, struct bytes *out);
void result_model_verdict(struct execpy_result *result, size_t limit, struct bytes *out);
/* Tells of the PNG, or else the JPEG, of each display and of the value. */
void result_pictures(const struct execpy_result *result,
		     void (*tell)(void *user, const char *mime, struct span data), void *user);

#endif
