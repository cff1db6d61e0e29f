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
#include "guest/processes.h"
#include "guest/snapshot.h"
#include "guest/standby.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct checkpoint {
	struct process process;
	struct snapshot *files; /* the workspace then; NULL: it was too large to keep */
	uint64_t run;           /* made behind it */
	bool latest, previous;
	char name[SESSION_NAME_BYTES_MAX + 1]; /* "": none */
};

/* The latest, the one before it, and one that is just coming in. */
#define CHECKPOINTS_MAX (SESSION_CHECKPOINTS_MAX + 3)

enum judge_state { IDLE, RUNNING, LOST };

static struct {
	enum judge_state state;
	struct process runner;
	struct process coming; /* a checkpoint on its way; socket -1: none */
	struct process next;   /* a runner on its way */
	struct checkpoint kept[CHECKPOINTS_MAX];
	size_t count;
	struct snapshot *files; /* of the workspace, when it was last looked at */
	int workspace, signals;
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
	uint64_t memory_bytes;    /* the session's limit */
	char files_failed[160];   /* why they could not be brought back */
} session = {.workspace = -1, .coming.socket = -1, .next.socket = -1};

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
	size_t at = frame_begin(&frame, failed ? MESSAGE_FAILED : MESSAGE_ACTED, 0);

	if (failed)
		frame_put_text(&frame, FIELD_TEXT, failed);
	for (size_t i = 0; !failed && i < session.count; i++)
		if (session.kept[i].name[0])
			frame_put_text(&frame, FIELD_CHECKPOINT, session.kept[i].name);
	frame_end(&frame, at);
	send_or_end(&frame, NULL, 0);
}

/* --- checkpoints ----------------------------------------------------------- */

static struct checkpoint *find_kept(enum checkpoint_choice choice, const char *name)
{
	for (size_t i = 0; i < session.count; i++) {
		struct checkpoint *kept = &session.kept[i];

		if ((choice == CHECKPOINT_LATEST && kept->latest) ||
		    (choice == CHECKPOINT_PREVIOUS && kept->previous) ||
		    (choice == CHECKPOINT_NAMED && strcmp(kept->name, name) == 0))
			return kept;
	}
	return NULL;
}

static void forget(size_t index)
{
	struct checkpoint *kept = &session.kept[index];

	process_kill(&kept->process);
	snapshot_release(kept->files);
	session.kept[index] = session.kept[--session.count];
}

static void forget_unused(void)
{
	for (size_t i = session.count; i-- > 0;)
		if (!session.kept[i].latest && !session.kept[i].previous &&
		    !session.kept[i].name[0])
			forget(i);
}

static void make_previous(struct checkpoint *kept)
{
	for (size_t i = 0; i < session.count; i++) {
		session.kept[i].previous = &session.kept[i] == kept;
		session.kept[i].latest = false;
	}
}

/* What the files of a named checkpoint may take: they are memory of the session that
 * nothing but dropping gives back. */
static uint64_t room_for_files(void)
{
	uint64_t all = session.memory_bytes / SESSION_SNAPSHOTS_SHARE, used = 0;

	for (size_t i = 0; i < session.count; i++)
		if (session.kept[i].name[0])
			used += snapshot_bytes(session.kept[i].files);
	return used < all ? all - used : 0;
}

/* The workspace as it is, if it is small; kept files are shared by all checkpoints
 * between which nothing changed. */
static struct snapshot *look_at_files(bool by_name, const char **ret_refused)
{
	const struct snapshot_bounds bounds = {
		.bytes = by_name ? room_for_files() : SESSION_SNAPSHOT_BYTES,
		.entries = by_name ? SESSION_SNAPSHOT_ENTRIES_MAX : SESSION_SNAPSHOT_ENTRIES,
	};
	/* What is written through a map of a file changes no time of it. */
	struct snapshot *before = process_maps_files(session.runner.pid) ? NULL : session.files;
	struct snapshot *taken = snapshot_take(session.workspace, &bounds, before, ret_refused);

	snapshot_release(session.files);
	session.files = snapshot_share(taken);
	return taken;
}

static void ask_checkpoint(void)
{
	const char *refused;

	session.due = false;
	if (session.coming.socket >= 0 || session.count == CHECKPOINTS_MAX)
		return;
	if (process_send_pair(session.runner.socket, MESSAGE_CHECKPOINT, &session.coming) < 0)
		return;
	session.asked_us = now_us();
	session.forking = true;
	/* While it forks. Nothing runs but threads that the code left. */
	snapshot_release(look_at_files(false, &refused));
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
	struct checkpoint *previous = find_kept(CHECKPOINT_LATEST, NULL);
	struct frame frame;
	size_t count = 0;
	int r = frame_receive(session.coming.socket, &buffer, &frame, fds, &count);

	if (r == 1 && frame.type == MESSAGE_PARKED && count == 1) {
		struct checkpoint *kept = &session.kept[session.count];

		session.coming.pidfd = fds[0];
		session.coming.pid = descriptors_pid(fds[0]);
		make_previous(previous);
		*kept = (struct checkpoint){
			.process = session.coming,
			.files = snapshot_share(session.files),
			.run = session.run,
			.latest = true,
		};
		session.count++;
		session.coming = (struct process){.pidfd = -1, .socket = -1};
		session.covered = session.run;
		session.ran_us = 0;
		session.why[0] = '\0';
		process_protect(kept->process.pid);
		standby_follow(&kept->process);
		forget_unused();
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
	return 1 + session.count + (size_t)standby_count();
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
		for (size_t i = session.count; i-- > 0;)
			if (session.kept[i].process.pid == pid)
				forget(i);
		process_reaped(pid);
	}
	if (lost)
		lose_runner(runners);
}

/* --- returning ------------------------------------------------------------- */

static bool is_checkpoint(pid_t pid)
{
	for (size_t i = 0; i < session.count; i++)
		if (session.kept[i].process.pid == pid)
			return true;
	return false;
}

/* A checkpoint's child is its helper: killed while it forks it would leave locks that
 * nobody gives back, and nothing could be forked of the checkpoint any more. */
static bool is_ours(pid_t pid, pid_t parent)
{
	return pid == getpid() || is_checkpoint(pid) || is_checkpoint(parent) || standby_is(pid) ||
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
	kept = find_kept(choice, name);
	if (!kept)
		say_acted(missing[choice]);
	return kept;
}

/* The warden lets nobody fork meanwhile. What dies may take its time. */
static void on_clear(const struct frame *frame)
{
	autobytes answer = {0};
	size_t at = frame_begin(&answer, MESSAGE_CLEARED, 0);

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
	const struct checkpoint *kept = find_kept(CHECKPOINT_LATEST, NULL);
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
	size_t at = frame_begin(&answer, MESSAGE_RESUMED, 0);

	session.runner = session.next;
	session.next = (struct process){.pidfd = -1, .socket = -1};
	session.state = IDLE;
	put_lost(&answer, lost);
	frame_end(&answer, at);
	session.covered = session.run;
	send_or_end(&answer, &session.runner.pidfd, 1);
	forget_unused();
}

static void on_resume(const struct frame *frame)
{
	enum checkpoint_choice choice = (enum checkpoint_choice)frame_number(frame, FIELD_NUMBER);
	struct checkpoint *kept = find_meant(frame);
	char lost[SESSION_LOST_MAX];
	bool ready;

	session.files_failed[0] = '\0';
	if (!kept)
		return;
	if (frame_number(frame, FIELD_MORE) && kept->files) {
		struct error err = {0};

		/* Nothing of the runner is left: back to the variables, at least. */
		if (snapshot_restore(session.workspace, kept->files, &err) < 0)
			snprintf(session.files_failed, sizeof session.files_failed, "%.159s",
				 err.text);
	}
	ready = standby_take(&kept->process, &session.next, lost);
	if (!ready && process_send_pair(kept->process.socket, MESSAGE_RESUME, &session.next) < 0) {
		say_acted("the checkpoint does not answer");
		return;
	}
	session.returning = choice != CHECKPOINT_LATEST;
	/* What is returned to is what a crash returns to. */
	for (size_t i = 0; i < session.count; i++) {
		if (choice != CHECKPOINT_LATEST)
			session.kept[i].previous = false;
		session.kept[i].latest = &session.kept[i] == kept;
	}
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
	struct checkpoint *kept = find_kept(CHECKPOINT_LATEST, NULL), *before;
	const char *refused = NULL;
	struct snapshot *files;
	size_t named = 0;

	frame_text(frame, FIELD_NAME, name, sizeof name);
	before = find_kept(CHECKPOINT_NAMED, name);
	for (size_t i = 0; i < session.count; i++)
		named += session.kept[i].name[0] != '\0' && &session.kept[i] != before;
	if (frame_number(frame, FIELD_MORE)) { /* drop it */
		if (before)
			before->name[0] = '\0';
		forget_unused();
		say_acted(before ? NULL : "there is no checkpoint of this name");
		return;
	}
	if (named == SESSION_CHECKPOINTS_MAX) {
		snprintf(why, sizeof why, "%d checkpoints are kept already: drop one first",
			 SESSION_CHECKPOINTS_MAX);
		say_acted(why);
		return;
	}
	if (!kept || session.covered != session.run) {
		snprintf(why, sizeof why, "no checkpoint can be made: %s",
			 session.why[0] ? session.why : "the last one is not ready");
		say_acted(why);
		return;
	}
	/* One process may stand for several names: they are one state. */
	if (kept->name[0] && kept != before) {
		say_acted("this very state is kept under another name already");
		return;
	}
	files = look_at_files(true, &refused);
	if (!files) {
		say_acted(refused);
		return;
	}
	snapshot_release(kept->files);
	kept->files = files;
	if (before && before != kept)
		before->name[0] = '\0';
	snprintf(kept->name, sizeof kept->name, "%s", name);
	forget_unused();
	say_acted(NULL);
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
	switch (frame.type) {
	case MESSAGE_GO:
		if (count == 1 && session.state == IDLE)
			on_go(&frame, fds[0]);
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
		const struct checkpoint *latest = find_kept(CHECKPOINT_LATEST, NULL);

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
	session.workspace = open("/workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (session.signals < 0 || session.workspace < 0)
		return fail(err, errno, "session: watch children");
	return 0;
}

void session_judge(const struct process *runner, int listener, uint64_t memory_bytes,
		   struct error *err)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_PARKED, 0);
	int said[3];

	if (watch_children(err) < 0)
		return;
	session.runner = *runner;
	session.memory_bytes = memory_bytes;
	process_protect(getpid());
	/* There is something to return to from the first run on. */
	ask_checkpoint();
	while (session.coming.socket >= 0)
		on_coming();
	while (session.forking && session.runner.socket >= 0)
		on_runner();
	if (session.count == 0) {
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
