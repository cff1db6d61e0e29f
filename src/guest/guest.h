/* SPDX-License-Identifier: Apache-2.0 */
/* guest: what the files of the guest program share.
 *
 * The program has two lives. As a *template* it starts CPython, imports, and
 * waits for the warden's word to fork. As a *cell* it is one of those forks:
 * it confines itself, waits for a request, runs it, and leaves its results in
 * the mailbox. Functions say in which life they may be called. */
#ifndef EXECPY_GUEST_GUEST_H
#define EXECPY_GUEST_GUEST_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "base/bytes.h"
#include "base/error.h"
#include "proto/frame.h"
#include "proto/mailbox.h"
#include "proto/messages.h"
#include "guest/names.h"
#include "guest/verifier/verify.h"

#include <stdbool.h>

/* interpreter.c */

/* Starts CPython: isolated, paths explicit, UTF-8, no bytecode written. Stage:
 * template, once. */
int interpreter_start(struct error *err);
/* Imports one module by name. -ENOENT when it is not installed; the Python
 * error is cleared and said in err. Stage: template. */
int interpreter_import(const char *module, struct error *err);
/* Fills the caches that libraries look for at first use: matplotlib's. Stage:
 * template, and again in each cell, whose directories are fresh. */
void interpreter_prepare_caches(void);
/* Fills err from the Python exception that is set, and clears it. */
int interpreter_error(struct error *err, const char *what);

/* memory.c */

/* CPython's arenas will lie side by side. Stage: template, before Python starts. */
void memory_prepare(void);
/* Takes back what Python's memory may still grow into; thoroughly: fills its
 * holes and makes huge pages, too. The last thing before the first fork. */
void memory_settle(bool thoroughly);

/* warmup.c */

/* Executes a template's warm-up; what it prints and warns of is dropped. The
 * Python error, with its line, is cleared and said in err. Stage: template. */
int warm_up(struct span code, struct error *err);

/* template.c */

/* The template's loop on its socket; returns only in a cell, when the warden
 * said go, with the request in *ret_request. */
int template_serve(int socket, struct bytes *ret_request, struct error *err);

/* cell.c */

/* Everything between fork and user code: descriptors, limits, confinement,
 * hygiene, the rehearsal if the template has settled, parking. fds as in enum
 * fork_fd. `failed` is what went wrong on the way here, if its number is set: then
 * that is said, and no more. `fork_cell` is the message that asked for it, which
 * lies in `buffer`, where what the warden says next will be.
 * Returns with the request, or does not return. Stage: cell. */
void cell_become(const int *fds, const struct error *failed, const struct frame *fork_cell,
		 bool settled, struct bytes *buffer, struct bytes *ret_request);

/* What makes cells fast, and LEFT_OUT which of it this build is without, so that
 * bench/measures.py can tell what it gives. */
enum measure {
	MEASURE_NONE,
	MEASURE_HUGE_PAGES,
	MEASURE_FILLED_HOLES,
	MEASURE_TEMPLATE_REHEARSALS,
	MEASURE_CELL_REHEARSAL,
	MEASURE_PREPARED_STREAMS,
	MEASURE_NUMPY_IN_PLACE,
	MEASURE_HUGE_INTERPRETER,
};
#ifndef LEFT_OUT
#define LEFT_OUT MEASURE_NONE
#endif

/* hygiene.c */

/* After fork, before user code: no two cells alike. Fails closed. Stage: cell. */
int hygiene_refresh(struct error *err);
/* In a branch that is to draw the same random numbers: around the fork's own handlers
 * and instead of the above. The state is a new reference, NULL without the module. */
PyObject *hygiene_keep_random(void);
int hygiene_refresh_but_random(PyObject *state, struct error *err);
/* Makes the streams of future cells and finds what each will renew, after
 * everything else that could use them. Stage: template. */
int hygiene_prepare(struct error *err);
/* sys.stdin, stdout, stderr on 0, 1, 2, unbuffered, never used before: those that
 * the template prepared, or fresh ones. Stage: cell. */
int hygiene_streams(struct error *err);
/* A fresh sys.stdin on descriptor 0: 0, or -1 with an exception. Stage: runner. */
int hygiene_stdin(void);
/* Makes the next one already, which is nobody's until then. Stage: runner. */
void hygiene_stdin_ahead(void);

/* print.c */

/* Puts a print() that writes a line at once into builtins. Stage: template. */
int print_install(struct error *err);

/* outbox.c: the cell's side of the mailbox. */

/* Maps the mailbox; its descriptor may then be closed. Stage: cell. */
int outbox_open(int fd, struct error *err);
/* Where it is mapped, in this process; and that it was moved. */
void *outbox_place(size_t *ret_size);
void outbox_moved(void *place);
/* Makes the pages be there that the next request and response begin with. */
void outbox_touch(void);
struct span outbox_request(void);
/* Where verdicts are written once and for all, before user code. */
void outbox_take_verdict(int fd);
/* Writes a verdict: 0 or a negative errno. */
int outbox_write_verdict(const struct bytes *frame);
/* Closes their descriptor: 0 or a negative errno. */
int outbox_close_verdict(void);
/* There is none any more, until the next is written: 0 or a negative errno. */
int outbox_renew_verdict(void);
/* The calling process is the one that writes responses from now on. */
void outbox_own(void);
/* Appends whole frames to the response, or nothing: -ENOSPC when they do not
 * fit, -EPERM in a process that the user's code forked. In a template, which
 * has no mailbox, what its warm-up shows is dropped. */
int outbox_append(const struct bytes *frames);
/* While muted what is appended is dropped. */
void outbox_mute(bool muted);
/* The end of a run that came to it by itself: tells the exit status, closes every
 * descriptor, exits. */
_Noreturn void outbox_finish(int exit_status);
/* The area for frames at a limit, and its publication; async-signal-safe. */
uint8_t *outbox_frames_area(size_t *ret_size);
void outbox_frames_publish(size_t length);

/* order.c */

/* What the mailbox asked for. */
struct order {
	struct span code;
	PyObject *arguments; /* sys.argv */
	struct policy policy;
	struct verify_context context;
	const char *files[INPUT_FILES_MAX + 1];
	bool check_only, probe;
	PyObject *environment; /* {name: (before, now)} of what the request set, or NULL */
};

/* Reads a whole MESSAGE_REQUEST, which must stay; its variables go into the
 * environment. Negative, perhaps with a Python exception, when it cannot be. */
int order_read(struct span request, struct order *order);
/* Its variables go from the environment again, but for what the code changed. */
void order_forget_environment(struct order *order);
void order_free(struct order *order);

/* run.c */

/* Takes what the end of a run calls, and gives __main__ its file. Stage: template. */
int run_prepare(struct error *err);
/* Creates main.py in the workspace, to be written when the code is known. */
int run_open_main(struct error *err);
/* Runs a request to its end and leaves the process. Stage: cell. */
_Noreturn void run_request(struct span request);
/* The source of the code that runs, for frames. */
struct span run_source(void);
#define RUN_FILE_NAME "main.py"

/* The parts of a run that its rehearsal goes through, too. */

void run_set_source(struct span code);
/* Where the run's order is. */
struct order *run_order(void);
/* The workspace becomes the first entry of sys.path. */
int run_enter_workspace(void);
/* The last statement apart, if it is an expression; else NULL. */
struct compiled {
	PyObject *first, *last;
};
/* 0, or -1 with an exception. */
int run_compile(struct span code, struct compiled *ret_code);
/* Runs it, and lets it go: as run_execute(). */
PyObject *run_evaluate(struct compiled *code, PyObject *globals);
/* Runs the code in a module's dictionary. Returns the value of a last expression
 * (or None), or NULL with the exception that ended it. */
PyObject *run_execute(struct span code, PyObject *globals);
/* Leaves the value (which is released), or the exception that is set, in the
 * mailbox. Returns the exit status that CPython would give. */
int run_tell(PyObject *value);
/* Flushes, clears the module and collects what nobody holds. */
void run_let_go(PyObject *globals);
void run_flush(void);
/* What the code is called in tracebacks: a session's runs have names of their own.
 * From then on top-level await is allowed. 0, or -1 with an exception. */
int run_set_name(const char *name);

/* rehearsal.c */

/* A module that was imported, for the rehearsal to import it again. */
int rehearsal_add_import(const char *module, struct error *err);
/* Opens what a rehearsal needs while opening is cheap. Stage: cell, unconfined. */
int rehearsal_open(struct error *err);
/* Goes the way of a real run from request to end, with a program of our own, and
 * leaves no trace but warmth. Fails closed. In a template thoroughly, in a cell
 * with what most code does. */
int rehearse(bool thoroughly, struct error *err);

/* judge.c */

/* Verifies the code and leaves the verdict in the mailbox: 1 allowed, 0 blocked,
 * negative when that failed: then nothing may run. *code becomes what was judged
 * and is to run, which stays until the next code is judged: the same, or the code
 * without a notebook's forms, line by line. Stage: cell, before any user code. */
int judge(struct span *code, const struct policy *policy, const struct verify_context *context,
	  struct error *err);
/* Leaves a verdict on each code of a request, in their order: 0 or a negative
 * errno. Stops when no more fit; the engine sees how many there are. Stage: cell,
 * where none of them will run. */
int judge_each(struct span request, const struct policy *policy,
	       const struct verify_context *context, struct error *err);

/* In a session, one code after another: the request that is in the mailbox. 1 allowed,
 * 0 blocked, negative when it could not be judged; the verdict is the caller's. Stage:
 * judge. */
int judge_turn(struct verdict *ret_verdict, struct error *err);
/* What the next code may name: a runner says, at the end of a run, what its module holds. */
void judge_take_names(const struct frame *done);
/* All of them, each with its NUL; and those that another judge knew. */
struct span judge_names(void);
int judge_know_names(struct span known);

/* session.c, turn.c, checkpoint.c: a cell that stays. See the tops of these files. */

/* Where the cell's socket to the warden is, from its first step on. */
#define CELL_CONTROL 3

/* One of a session's processes, as its judge has it. */
struct process {
	pid_t pid;
	int pidfd, socket;
};

/* Serves the warden until it is gone; returns only with what failed before.
 * memory_bytes is the session's limit. `changed` is not empty in a branch, whose runner
 * has yet to take over: what that process said. Stage: the judge, confined. */
void session_judge(const struct process *runner, int listener, uint64_t memory_bytes,
		   struct span changed, struct error *err);
/* Runs what the judge sends until it is gone. Stage: the runner, confined. */
_Noreturn void turn_loop(int link);
/* "<run 3>" while a session's code runs, else NULL. */
const char *turn_name(void);
/* Runs a coroutine (whose reference it takes) to its end: the value, or NULL. */
PyObject *turn_await(PyObject *coroutine);
/* In a runner that was resumed: the event loop's descriptors are dead. */
void turn_forget_loop(void);
/* Forks a checkpoint, which says on `socket` that it is there. Returns the link to
 * go on with: the same, or in a runner that is resumed later its own. */
int checkpoint_make(int link, int socket);

/* prepare.c: the code of a run that is being verified is compiled, if it can be; and
 * taken, when it may run and is what was sent. Stage: the runner. */
void prepare_code(uint64_t run, struct span request);
bool prepare_take(uint64_t run, struct compiled *ret_code);
void prepare_drop(void);

/* hotpages.c: a runner's pages around the fork of its checkpoint. Before it, what the
 * last run wrote to is learnt; behind it, also in a runner that is forked of one, what
 * the next run is likely to write to is made its own. Stage: the runner. */
void hotpages_before_fork(void);
void hotpages_after_fork(void);

/* audit.c */

/* Stage: template, before the interpreter starts. */
int audit_install(struct error *err);
/* The imports that the verifier saw and judged. */
void audit_know_imports(const struct verdict *verdict);
void audit_know_import(struct span module);
/* From here on the user's code is judged as it runs, until the end of it. The
 * policy must stay. Stage: cell. */
void audit_arm(const struct policy *policy, const struct verify_context *of_run);
/* After a rehearsal. */
void audit_disarm(void);
/* A dry run: what the user's code imports, opens, starts and connects to is
 * written to the mailbox, each thing once. Stage: cell. */
void audit_record(void);

/* bundle.c */

/* What of an object is asked for. */
struct bundle_choice {
	PyObject *include, *exclude; /* collections of MIME types; NULL or None: all, none */
	bool raw;                    /* it is a dictionary of data itself */
	bool only_plain;
};

/* Puts an object's MIME bundle into an open frame. No exception is left, whatever
 * the object's own methods do. Stage: cell. */
void bundle_put(struct bytes *frame, PyObject *object, const struct bundle_choice *choice);
/* True when the object has a method that displays it, and that was called. */
bool bundle_shows_itself(PyObject *object);
bool bundle_is_plotly(PyObject *object);

/* display.c */

/* Installs display() in builtins. Stage: template. */
int display_install(struct error *err);
/* Appends a frame of `type` with the MIME bundle of `object`. New reference
 * counts are balanced; Python errors inside are turned into text. Stage: cell. */
void display_object(enum message type, PyObject *object);
/* What was shown until now was a warm-up's, and does not count. */
void display_forget(void);

/* ipython.c */

/* IPython.display can be imported, wherever IPython itself is not there. Stage:
 * template. */
int ipython_install(struct error *err);

/* figures.c: every open matplotlib figure as a display; `close` them after. */
void figures_show(bool close);
/* The PNG of a figure, or of an animation's first frame, as a bytes object; NULL
 * without an error, for all other objects too. */
PyObject *figures_png(PyObject *object);
/* What a figure that was drawn shows, when that is asked for; else NULL. */
PyObject *figures_chart(PyObject *object);
/* The backend module that MPLBACKEND names, for PyImport_AppendInittab. */
PyObject *figures_backend_init(void);
#define FIGURES_BACKEND "_execpy_agg"

/* pictures.c */

/* From now on no side of a picture has more pixels; 0: any. */
void pictures_bound(uint32_t pixels);
uint32_t pictures_most(void);
/* The longer side of a PNG or JPEG, a bytes object, that is too long; else 0. */
uint32_t pictures_excess(PyObject *data);
/* Takes over a bytes object and gives it back, or a smaller picture of the same. */
PyObject *pictures_fit(PyObject *data);

/* failure.c */

/* Stage: template. */
int failure_prepare(void);

/* Records the exception (not consumed) as MESSAGE_ERROR and prints it to
 * sys.stderr as CPython would. Returns the exit status that CPython would give. */
int failure_report(PyObject *type, PyObject *value, PyObject *traceback);

/* stopframes.c */

/* The signal by which the warden asks where the code stands: glibc's own
 * SIGSETXID, which neither sigprocmask() nor signal() can touch. */
#define STOP_SIGNAL 33
/* glibc installs its own handler for it when the first thread is made; this
 * lets that happen before ours. Stage: template, before imports. */
int stopframes_prepare(struct error *err);
/* Stage: cell, in its main thread. */
int stopframes_install(struct error *err);

#endif
