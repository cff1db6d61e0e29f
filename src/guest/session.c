/* SPDX-License-Identifier: Apache-2.0 */
/* session: the judge of a session, and what it keeps.
 *
 * Theory of operation. A session's cell holds three kinds of process beside the
 * user's own: the *judge*, the *runner*, and *checkpoints* (checkpoint.c).
 *
 *     init
 *     judge ─ verifies, keeps, tells the warden        no user code ever
 *      ├─ runner ─ runs one code after another          (turn.c)
 *      ├─ checkpoint, checkpoint …                       frozen forks of the runner
 *      └─ what the user's processes left behind
 *
 * The judge is the cell's main process; it forked the runner before any user code,
 * so it can verify each code in a process in which none has run, and it alone
 * talks to the warden. As parent and subreaper it gets the wait status of every
 * runner, which is the kernel's word on how a run ended. The runner has a second
 * Landlock domain beneath the judge's: it cannot signal the judge nor look into it.
 *
 *   IDLE ── GO, verified ──▶ RUNNING ── DONE ──▶ IDLE (and a checkpoint is made)
 *   any ── the runner ended ──▶ LOST ── CLEAR ──▶ LOST ── RESUME ──▶ IDLE
 *
 * A checkpoint is made behind each run that came to its end: a moment later, so that it
 * takes no processor from those who tell the end, unless runs hurry. While threads run
 * none can be made; one that takes long (a session of more than a gigabyte) waits for a
 * pause, and runs go before it. What a return then loses is told.
 *
 * Should: answer each message of the warden's once.
 * Mustn't: run user code, or believe the runner in anything but its own state. */
#include "guest/guest.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/memfile.h"
#include "guest/branch.h"
#include "guest/kept.h"
#include "guest/processes.h"
#include "guest/standby.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum judge_state { IDLE, RUNNING, LOST };

static struct {
	enum judge_state state;
	struct process runner;
	struct process coming; /* a checkpoint on its way; socket -1: none */
	struct process next;   /* a runner on its way */
	int signals;
	uint64_t run, covered;    /* the last that began, and that a checkpoint knows */
	uint64_t lost_to;         /* the last of which something may be lost */
	bool returning;           /* it was asked for: nothing is lost by it */
	bool forking;             /* the runner is not yet back from making one */
	bool due;                 /* a checkpoint is to be made */
	bool patient;             /* runs may go before it */
	int64_t due_us;           /* not before */
	int64_t asked_us;         /* for the one on its way */
	uint64_t cost_us;         /* what the last took */
	int64_t began_us, ran_us; /* the run; all since the last checkpoint */
	int64_t ended_us;         /* the last run */
	bool hurried;             /* one run follows the other */
	char why[80];             /* none could be made */
	unsigned killed;          /* processes beside the runner */
	bool blank;               /* a branch: its runner has yet to take over */
	uint64_t asked;           /* the number of what is to be answered; 0: a run */
	bool branch_waits;        /* for the checkpoint that is due */
	uint64_t branch_asked;    /* the number of what the answer is to */
	char files_failed[160];   /* why they could not be brought back */
} session = {.coming.socket = -1, .next.socket = -1};

/* --- saying ---------------------------------------------------------------- */

static void send_or_end(const struct bytes *frame, const int *fds, size_t count)
{
	if (frame_send(CELL_CONTROL, frame, fds, count) < 0)
		_exit(1); /* without a warden there is no session */
}

/* `ours`: when the runner has ended, all processes that should be left; 0: some may
 * still be dying. */
static void say_turn(int status, bool ended, size_t ours)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_TURN, session.run);

	frame_put_number(&frame, FIELD_STATUS, (uint64_t)status);
	frame_put_number(&frame, FIELD_MORE, ended);
	frame_put_number(&frame, FIELD_COUNT, ours);
	frame_end(&frame, at);
	send_or_end(&frame, NULL, 0);
}

static void say_acted(const char *failed)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, failed ? MESSAGE_FAILED : MESSAGE_ACTED, session.asked);

	if (failed)
		frame_put_text(&frame, FIELD_TEXT, failed);
	else
		kept_put_names(&frame);
	frame_end(&frame, at);
	send_or_end(&frame, NULL, 0);
}

/* --- checkpoints ----------------------------------------------------------- */

static void ask_checkpoint(void)
{
	session.due = false;
	if (session.coming.socket >= 0 || kept_is_full())
		return;
	if (process_send_pair(session.runner.socket, MESSAGE_CHECKPOINT, 0, &session.coming) < 0)
		return;
	session.asked_us = now_us();
	session.forking = true;
	/* While it forks. Nothing runs but threads that the code left. */
	kept_look_at_files(session.runner.pid);
}

static void end_coming(const char *why)
{
	snprintf(session.why, sizeof session.why, "%s", why);
	process_close(&session.coming);
}

static bool is_making_one(void)
{
	return session.coming.socket >= 0 || session.forking;
}

static void on_coming(void)
{
	static struct bytes buffer;
	int fds[FRAME_FDS_MAX];
	char why[80] = "it did not answer";
	struct frame frame;
	size_t count = 0;
	int r = frame_receive(session.coming.socket, &buffer, &frame, fds, &count);

	if (r == 1 && frame.type == MESSAGE_PARKED && count == 1) {
		session.coming.pidfd = fds[0];
		session.coming.pid = descriptors_pid(fds[0]);
		standby_follow(&kept_add(&session.coming)->process);
		session.covered = session.run;
		session.ran_us = 0;
		session.why[0] = '\0';
		kept_forget_unused();
		return;
	}
	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
	if (r == 1)
		frame_text(&frame, FIELD_TEXT, why, sizeof why);
	end_coming(why);
}

/* --- runs ------------------------------------------------------------------ */

static void say_prepare(uint64_t run)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_PREPARE, run);

	frame_end(&frame, at);
	/* Only speed depends on it: a runner that is gone is seen to be. */
	frame_send(session.runner.socket, &frame, NULL, 0);
}

static void on_go(const struct frame *frame, int input)
{
	autoverdict verdict = {0};
	autobytes go = {0};
	struct error err = {0};
	size_t at;
	int fds[2] = {input, -1}, r;

	session.hurried = now_us() - session.ended_us < SESSION_HURRY_US;
	say_prepare(frame->id);
	r = judge_turn(&verdict, &err);
	session.run = frame->id;
	session.due = false;
	/* What is to run, when that is not what was sent: a notebook's forms are left out. */
	if (r == 1 && verdict.source.length > 0) {
		fds[1] = memfile_write("source", bytes_span(&verdict.source), &err);
		r = fds[1] < 0 ? fds[1] : 1;
	}
	if (r < 0) {
		say_acted(err.text);
		return;
	}
	if (r == 0) {
		/* Nothing was done that a checkpoint would have to know. */
		if (session.covered == session.run - 1)
			session.covered = session.run;
		say_turn(0, false, 0);
		return;
	}
	at = frame_begin(&go, MESSAGE_GO, session.run);
	for (size_t i = 0; i < verdict.import_count; i++)
		frame_put_text(&go, FIELD_MODULE, verdict.imports[i]);
	frame_end(&go, at);
	session.state = RUNNING;
	session.began_us = now_us();
	/* A runner that does not listen any more is about to be seen to end. */
	if (frame_send(session.runner.socket, &go, fds, fds[1] >= 0 ? 2 : 1) < 0)
		pidfd_send_signal(session.runner.pidfd, SIGKILL, NULL, 0);
	close_fd(&fds[1]);
}

/* A checkpoint is made at once, unless the session is very large, and it would take
 * much against the runs since the last: then in a pause that is long against it. */
static void be_due(void)
{
	int64_t worth_us = (int64_t)session.cost_us * SESSION_CHECKPOINT_SHARE;

	session.ran_us += now_us() - session.began_us;
	session.due = true;
	session.patient = session.cost_us > SESSION_CHEAP_US && session.ran_us < worth_us &&
			  process_tables_kib(session.runner.pid) > SESSION_TABLES_KIB;
	session.ended_us = now_us();
	session.due_us = session.ended_us;
	if (session.patient)
		session.due_us += worth_us;
	else if (!session.hurried)
		session.due_us += SESSION_BREATH_US;
}

static void on_runner(void)
{
	static struct bytes buffer;
	int fds[FRAME_FDS_MAX];
	struct frame frame;
	size_t count = 0;
	int r = frame_receive(session.runner.socket, &buffer, &frame, fds, &count);

	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
	if (r == 1 && frame.type == MESSAGE_DONE && session.state == RUNNING &&
	    frame.id == session.run) {
		session.state = IDLE;
		judge_take_names(&frame);
		say_turn((int)(frame_number(&frame, FIELD_EXIT_CODE) & 0xff) << 8, false, 0);
		be_due();
	} else if (r == 1 && frame.type == MESSAGE_CHECKPOINT) {
		session.forking = false;
		session.cost_us = frame_number(&frame, FIELD_CPU_US);
		if (session.cost_us > SESSION_ACT_MS * 1000) /* its word */
			session.cost_us = SESSION_ACT_MS * 1000;
	} else {
		/* It ended, or is another program by now, which may end by itself; or code
		 * plays with what is not its own. */
		if (r != 0)
			pidfd_send_signal(session.runner.pidfd, SIGKILL, NULL, 0);
		close_fd(&session.runner.socket);
	}
}

/* The runner is gone, and what it was making with it. */
static void note_loss(void)
{
	if (session.coming.socket >= 0)
		process_kill(&session.coming);
	session.due = session.forking = false;
	if (session.state != LOST)
		session.lost_to = session.state == RUNNING ? session.run - 1 : session.run;
	session.state = LOST;
}

/* The judge, the checkpoints, a standby. */
static size_t count_ours(void)
{
	if (processes_are_dying() || standby_count() < 0)
		return 0;
	return 1 + kept_count() + (size_t)standby_count();
}

static void lose_runner(int status)
{
	process_close(&session.runner);
	note_loss();
	session.killed = 0;
	say_turn(status, true, count_ours());
}

/* Last of all that the runner has ended: then all that are counted with it are there,
 * if only as what is left of them, until the warden has answered. */
static void reap(void)
{
	int status, runners = 0;
	bool lost = false;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
		if (pid == session.runner.pid) {
			lost = true;
			runners = status;
			continue;
		}
		if (standby_is(pid))
			standby_forget();
		kept_reaped(pid);
		process_reaped(pid);
	}
	if (lost)
		lose_runner(runners);
}

/* --- returning ------------------------------------------------------------- */

/* A checkpoint's child is its helper: killed while it forks it would leave locks that
 * nobody gives back, and nothing could be forked of the checkpoint any more. */
static bool is_ours(pid_t pid, pid_t parent)
{
	return pid == getpid() || kept_has(pid) || kept_has(parent) || standby_is(pid) ||
	       process_is_dying(pid);
}

/* The checkpoint that CLEAR and RESUME are about, or NULL: then that was said. */
static struct checkpoint *find_meant(const struct frame *frame)
{
	static const char *const missing[] = {
		[CHECKPOINT_LATEST] = "its checkpoint is gone, too",
		[CHECKPOINT_PREVIOUS] = "there is nothing to undo",
		[CHECKPOINT_NAMED] = "there is no checkpoint of this name",
	};
	enum checkpoint_choice choice = (enum checkpoint_choice)frame_number(frame, FIELD_NUMBER);
	char name[SESSION_NAME_BYTES_MAX + 1] = "";
	struct checkpoint *kept;

	frame_text(frame, FIELD_NAME, name, sizeof name);
	/* No checkpoint knows of the last run: the latest is from before it. */
	if (choice == CHECKPOINT_PREVIOUS && session.covered < session.run)
		choice = CHECKPOINT_LATEST;
	kept = kept_find(choice, name);
	if (!kept)
		say_acted(missing[choice]);
	return kept;
}

/* The warden lets nobody fork meanwhile. What dies may take its time. */
static void on_clear(const struct frame *frame)
{
	autobytes answer = {0};
	size_t at = frame_begin(&answer, MESSAGE_CLEARED, session.asked);

	if (!find_meant(frame))
		return;
	process_kill(&session.runner);
	note_loss();
	session.killed = processes_kill_others(is_ours);
	frame_end(&answer, at);
	send_or_end(&answer, NULL, 0);
}

static void put_lost(struct bytes *frame, const char *lost)
{
	const struct checkpoint *kept = kept_find(CHECKPOINT_LATEST, NULL);
	char text[SESSION_LOST_MAX];

	if (lost[0])
		frame_put_text(frame, FIELD_NOTE, lost);
	if (session.killed > 0) {
		snprintf(text, sizeof text, "%u child process%s", session.killed,
			 session.killed == 1 ? "" : "es");
		frame_put_text(frame, FIELD_NOTE, text);
	}
	if (session.files_failed[0])
		frame_put_text(frame, FIELD_NOTE, session.files_failed);
	if (session.returning && kept && !kept->files)
		frame_put_text(frame, FIELD_NOTE,
			       "nothing of the files: the workspace is too large to be kept");
	if (!session.returning && session.covered < session.lost_to) {
		snprintf(text, sizeof text, "what was done since run %llu: %s",
			 (unsigned long long)session.covered,
			 session.why[0] ? session.why : "the session is large and had no pause");
		frame_put_text(frame, FIELD_NOTE, text);
	}
}

/* There is a runner again: tells the warden, and what it cannot bring back. */
static void go_on(const char *lost)
{
	autobytes answer = {0};
	size_t at = frame_begin(&answer, MESSAGE_RESUMED, session.asked);

	session.runner = session.next;
	session.next = (struct process){.pidfd = -1, .socket = -1};
	session.state = IDLE;
	put_lost(&answer, lost);
	frame_end(&answer, at);
	session.covered = session.run;
	send_or_end(&answer, &session.runner.pidfd, 1);
	kept_forget_unused();
}

static void on_resume(const struct frame *frame)
{
	enum checkpoint_choice choice = (enum checkpoint_choice)frame_number(frame, FIELD_NUMBER);
	struct checkpoint *kept = find_meant(frame);
	char lost[SESSION_LOST_MAX];
	struct error err = {0};
	bool ready;

	session.files_failed[0] = '\0';
	if (!kept)
		return;
	/* Nothing of the runner is left: back to the variables, at least. */
	if (frame_number(frame, FIELD_MORE) && kept_restore_files(kept, &err) < 0)
		snprintf(session.files_failed, sizeof session.files_failed, "%.159s", err.text);
	ready = standby_take(&kept->process, &session.next, lost);
	if (!ready &&
	    process_send_pair(kept->process.socket, MESSAGE_RESUME, 0, &session.next) < 0) {
		say_acted("the checkpoint does not answer");
		return;
	}
	session.returning = choice != CHECKPOINT_LATEST;
	kept_return_to(kept, session.returning);
	standby_follow(&kept->process);
	if (!session.returning)
		standby_expect();
	if (ready)
		go_on(lost);
}

static void on_next(void)
{
	static struct bytes buffer;
	char why[SESSION_LOST_MAX] = "the checkpoint did not resume", lost[SESSION_LOST_MAX] = "";
	int fds[FRAME_FDS_MAX];
	struct frame frame;
	size_t count = 0;
	int r = frame_receive(session.next.socket, &buffer, &frame, fds, &count);

	if (r != 1 || frame.type != MESSAGE_PARKED || count != 1) {
		if (r == 1)
			frame_text(&frame, FIELD_TEXT, why, sizeof why);
		for (size_t i = 0; i < count; i++)
			close_fd(&fds[i]);
		process_close(&session.next);
		say_acted(why);
		return;
	}
	session.next.pidfd = fds[0];
	session.next.pid = descriptors_pid(fds[0]);
	frame_text(&frame, FIELD_NOTE, lost, sizeof lost);
	go_on(lost);
	process_expose(session.runner.pid);
}

/* --- named checkpoints ------------------------------------------------------ */

static void on_checkpoint(const struct frame *frame)
{
	char name[SESSION_NAME_BYTES_MAX + 1] = "", why[160];
	struct checkpoint *latest = kept_find(CHECKPOINT_LATEST, NULL);

	frame_text(frame, FIELD_NAME, name, sizeof name);
	if (frame_number(frame, FIELD_MORE)) { /* drop it */
		say_acted(kept_drop_name(name));
		return;
	}
	if (!latest || session.covered != session.run) {
		snprintf(why, sizeof why, "no checkpoint can be made: %s",
			 session.why[0] ? session.why : "the last one is not ready");
		say_acted(why);
		return;
	}
	say_acted(kept_name(latest, name, session.runner.pid));
}

/* --- branches ----------------------------------------------------------------- */

static void say_branched(const char *failed)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_BRANCHED, session.branch_asked);

	if (failed)
		frame_put_text(&frame, FIELD_TEXT, failed);
	frame_end(&frame, at);
	send_or_end(&frame, NULL, 0);
}

/* In the session that is branched: its state is that of the latest checkpoint. */
static void give_branch(struct span wanted, const int *fds, size_t count)
{
	const struct checkpoint *kept = kept_find(CHECKPOINT_LATEST, NULL);
	struct error err = {0};
	int r;

	if (!kept || session.state != IDLE || session.covered != session.run)
		r = refuse(&err, EINVAL, "%s",
			   session.why[0] ? session.why : "its checkpoint is not ready");
	else if (count == 0)
		r = branch_ask(&kept->process, &err);
	else
		r = branch_give(&kept->process, session.run, wanted, fds[BRANCH_FD_FILES],
				fds[BRANCH_FD_MEMORY], &err);
	say_branched(r < 0 ? err.text : NULL);
}

/* In the branch: the process that took over is its checkpoint, and forks the runner. */
static void take_branch(const int *fds, bool same_random)
{
	struct checkpoint *kept;
	struct error err = {0};

	if (branch_take(&session.runner, fds[BRANCH_FD_FILES], fds[BRANCH_FD_MEMORY], &session.run,
			&err) < 0) {
		say_branched(err.text);
		return;
	}
	session.blank = false;
	session.covered = session.lost_to = session.run;
	kept_look_at_files(session.runner.pid);
	kept = kept_add(&session.runner);
	standby_follow(&kept->process);
	session.state = LOST;
	session.returning = true;
	if (process_send_pair(kept->process.socket, MESSAGE_RESUME, same_random, &session.next) < 0)
		say_branched("what took over does not answer");
}

static void on_branch(const struct frame *frame, const int *fds, size_t count)
{
	struct reader fields = frame_fields(frame);
	struct span wanted = {NULL, 0};
	struct field field;

	session.branch_asked = frame->id;
	while (frame_next_field(&fields, &field) == 1)
		if (field.name == FIELD_DATA)
			wanted = field.value;
	if (session.blank && count == BRANCH_FD_COUNT) {
		take_branch(fds, frame_number(frame, FIELD_MORE));
	} else if (count == 0 && session.due) {
		session.due_us = 0;
		session.branch_waits = true;
	} else {
		give_branch(wanted, fds, count);
	}
}

/* --- the loop --------------------------------------------------------------- */

static void on_warden(void)
{
	static struct bytes buffer;
	int fds[FRAME_FDS_MAX];
	struct frame frame;
	size_t count = 0;
	int r = frame_receive(CELL_CONTROL, &buffer, &frame, fds, &count);

	if (r != 1)
		_exit(0);
	session.asked = frame.type == MESSAGE_GO ? 0 : frame.id;
	switch (frame.type) {
	case MESSAGE_GO:
		if (count == 1 && session.state == IDLE && !session.blank)
			on_go(&frame, fds[0]);
		else if (session.state == LOST)
			say_turn(0, true, 0); /* it ended before this run */
		break;
	case MESSAGE_CLEAR:
		on_clear(&frame);
		break;
	case MESSAGE_RESUME:
		on_resume(&frame);
		break;
	case MESSAGE_CHECKPOINT:
		on_checkpoint(&frame);
		break;
	case MESSAGE_BRANCH:
		on_branch(&frame, fds, count);
		break;
	default:
		_exit(1);
	}
	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
}

/* -1: until somebody says something. */
static int64_t next_wait_us(void)
{
	int64_t until_us;

	if (is_making_one())
		until_us = session.asked_us + SESSION_CHECKPOINT_MS * 1000;
	else if (standby_socket(&until_us) >= 0)
		until_us += SESSION_CHECKPOINT_MS * 1000;
	else if (session.next.socket >= 0)
		return -1; /* the warden's patience ends first */
	else if (session.due && session.state == IDLE)
		until_us = session.due_us;
	else if (session.state == IDLE)
		until_us = standby_due_us();
	else
		return -1;
	if (until_us < 0)
		return -1;
	return until_us > now_us() ? until_us - now_us() : 0;
}

/* What was waited for did not come, or the pause has. */
static void on_time(void)
{
	int64_t ignored;

	if (is_making_one()) {
		end_coming("it took too long");
		session.forking = false;
	} else if (standby_socket(&ignored) >= 0) {
		standby_forget();
	} else if (session.due) {
		ask_checkpoint();
	} else {
		const struct checkpoint *latest = kept_find(CHECKPOINT_LATEST, NULL);

		if (latest)
			standby_ask(&latest->process);
		else
			standby_forget();
	}
}

static _Noreturn void keep_session(void)
{
	enum { WARDEN, SIGNALS, RUNNER, COMING, NEXT, STANDBY, POLLED };

	for (;;) {
		/* A run waits for the checkpoint of the one before: else there might be
		 * nothing to return to. */
		int64_t asked_us;
		int standby = standby_socket(&asked_us);
		bool busy = is_making_one() || session.next.socket >= 0 || standby >= 0;
		bool answered = session.state != LOST || session.next.socket >= 0;
		struct pollfd polled[POLLED] = {
			[WARDEN] = {.fd = busy ? -1 : CELL_CONTROL, .events = POLLIN},
			[SIGNALS] = {.fd = answered ? session.signals : -1, .events = POLLIN},
			[RUNNER] = {.fd = session.runner.socket, .events = POLLIN},
			[COMING] = {.fd = session.coming.socket, .events = POLLIN},
			[NEXT] = {.fd = session.next.socket, .events = POLLIN},
			[STANDBY] = {.fd = standby, .events = POLLIN},
		};
		struct signalfd_siginfo info;
		int64_t wait_us = next_wait_us();
		struct timespec wait = {wait_us / 1000000, wait_us % 1000000 * 1000};
		int r;

		if (wait_us == 0) {
			on_time();
			continue;
		}
		if (session.branch_waits && !busy) {
			session.branch_waits = false;
			give_branch((struct span){NULL, 0}, NULL, 0);
			continue;
		}
		r = ppoll(polled, POLLED, wait_us < 0 ? NULL : &wait, NULL);
		if (r < 0 && errno != EINTR)
			_exit(1);
		if (polled[RUNNER].revents)
			on_runner();
		else if (polled[COMING].revents)
			on_coming();
		else if (polled[NEXT].revents)
			on_next();
		else if (polled[STANDBY].revents)
			standby_hear();
		else if (polled[SIGNALS].revents && read(session.signals, &info, sizeof info) > 0)
			reap();
		else if (polled[WARDEN].revents && session.due && !session.patient)
			ask_checkpoint();
		else if (polled[WARDEN].revents)
			on_warden();
	}
}

/* --- the beginning ---------------------------------------------------------- */

static int watch_children(struct error *err)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &child, NULL) < 0)
		return fail(err, errno, "session: block SIGCHLD");
	session.signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (session.signals < 0)
		return fail(err, errno, "session: watch children");
	return 0;
}

void session_judge(const struct process *runner, int listener, uint64_t memory_bytes,
		   struct span changed, struct error *err)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_PARKED, 0);
	int said[3];

	if (watch_children(err) < 0 || kept_open(memory_bytes, err) < 0)
		return;
	session.runner = *runner;
	session.blank = changed.length > 0;
	if (session.blank)
		frame_put(&frame, FIELD_DATA, changed.data, changed.length);
	process_protect(getpid());
	/* There is something to return to from the first run on. */
	if (!session.blank)
		ask_checkpoint();
	while (session.coming.socket >= 0)
		on_coming();
	while (session.forking && session.runner.socket >= 0)
		on_runner();
	if (kept_count() == 0 && !session.blank) {
		refuse(err, EPROTO, "session: no checkpoint: %s", session.why);
		return;
	}
	said[0] = pidfd_open(getpid(), 0);
	said[1] = listener;
	said[2] = session.runner.pidfd;
	if (said[0] < 0) {
		fail(err, errno, "session: pidfd_open");
		return;
	}
	frame_end(&frame, at);
	send_or_end(&frame, said, 3);
	close(said[0]);
	close(listener);
	keep_session();
}
