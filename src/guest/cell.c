/* SPDX-License-Identifier: Apache-2.0 */
/* cell: from fork to the first line of user code.
 *
 * Theory of operation. A cell is born as a fork of the template with all
 * capabilities of its own user namespace, which it needs for nothing: every
 * step below takes something away, each is checked after it is done, and the
 * first that fails is said to the warden by name and ends the process. Then it
 * parks in recv() until the warden says go. The control socket is closed
 * before user code runs; from then on the mailbox is the only way out.
 *
 * Order: descriptors first, so that nothing else can be touched by mistake;
 * /proc is used while the process is still dumpable; Landlock and seccomp
 * after everything that they forbid. */
#include "guest/image.h"

#include "base/cleanup.h"
#include "jail/credentials.h"
#include "jail/landlock.h"
#include "jail/namespaces.h"
#include "jail/resources.h"
#include "jail/syscalls.h"
#include "jail/watch.h"
#include "policy/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUNNER_LINK 100 /* at least */

static void say(enum message type, const struct error *why, const int *fds, size_t count)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, (uint16_t)type, 0);

	if (why)
		frame_put_text(&frame, FIELD_TEXT, why->text);
	frame_end(&frame, at);
	frame_send(CELL_CONTROL, &frame, fds, count);
}

static int take_descriptors(const int *fds, struct error *err)
{
	int keep[3] = {fds[FORK_FD_CONTROL], fds[FORK_FD_MAILBOX], fds[FORK_FD_VERDICT]};

	for (int i = 0; i < 3; i++)
		if (dup2(fds[FORK_FD_STDIN + i], i) < 0)
			return fail(err, errno, "cell: standard stream %d", i);
	if (descriptors_keep(keep, 3, err) < 0)
		return -err->number;
	if (outbox_open(keep[1], err) < 0)
		return -err->number;
	close(keep[1]);
	outbox_take_verdict(keep[2]);
	return 0;
}

/* What the process has too much of. */
static int drop_rights(struct error *err)
{
	int r;

	if (setsid() < 0)
		return fail(err, errno, "cell: setsid");
	umask(022);
	/* Dumpable towards its own kind: /proc/self must work for libraries.
	 * Nobody without the same namespace and its capabilities can look. */
	r = credentials_drop(1, err);
	if (r < 0)
		return r;
	r = resources_oom_score(1000, err);
	return r == 0 ? resources_limit_always(err) : r;
}

static int fence_in(bool judge, struct error *err)
{
#ifndef UNSAFE_WITHOUT_LANDLOCK
	static const struct landlock_path paths[] = {
		{"/", LANDLOCK_READ, false},
		{"/workspace", LANDLOCK_WRITE, false},
		{"/tmp", LANDLOCK_WRITE, false},
		{"/dev/shm", LANDLOCK_WRITE, false},
		{"/var/cache/matplotlib", LANDLOCK_WRITE, false},
		/* Its nodes; the directory itself is on a read-only mount. */
		{"/dev", LANDLOCK_DEVICE, false},
		/* The judge alone: whom the kernel takes first when memory is out. */
		{"/proc", LANDLOCK_WRITE, false},
	};
	const struct landlock_plan plan = {
		.paths = paths,
		.path_count = ARRAY_LENGTH(paths) - !judge,
		.deny_tcp = true,
		.deny_abstract_sockets = true,
		.deny_signals = true,
	};

	return landlock_confine(&plan, err);
#else
	return 0;
#endif
}

static int confine(int *ret_listener, struct error *err)
{
	int r = fence_in(false, err);

	if (r < 0)
		return r;
	*ret_listener = watch_install(err);
	if (*ret_listener < 0)
		return *ret_listener;
	return filter_install(FILTER_CELL, err);
}

/* The limits of the run that is about to start, from MESSAGE_GO, or of a session:
 * what the warden's cgroups hold is left to them, and doubled by nothing here. */
static int apply_limits(const struct frame *frame, bool session, uint64_t *ret_memory_bytes,
			struct error *err)
{
	struct reader fields = frame_fields(frame);
	struct resources resources = {0};
	uint64_t memory_in_cgroup = 0, cpu_in_cgroup = 0;
	struct limits limits = {0};
	struct field field;
	int r = 0;

	while (r == 0 && frame_next_field(&fields, &field) == 1) {
		if (field.name == FIELD_LIMITS)
			r = limits_decode(field.value, &limits, err);
		else if (field.name == FIELD_MEMORY_PEAK)
			r = field_number(&field, &memory_in_cgroup);
		else if (field.name == FIELD_CPU_US)
			r = field_number(&field, &cpu_in_cgroup);
	}
	if (r < 0 || limits.processes == 0)
		return refuse(err, EBADMSG, "cell: there are no limits");
	/* The user namespace is the cell's own, and init counts in it. */
	resources.processes = limits.processes + 1 + (session ? SESSION_PROCESSES : 0);
	resources.file_bytes = limits.disk_bytes;
	*ret_memory_bytes = limits.memory_bytes;
	/* A session's processes live longer than its runs. */
	if (!cpu_in_cgroup && !session)
		resources.cpu_seconds = limits.cpu_ms / 1000 + 2;
	/* Without a cpu cgroup hundreds of busy processes would keep the warden
	 * from looking. */
	if (!cpu_in_cgroup && setpriority(PRIO_PROCESS, 0, CELL_NICE) < 0)
		return fail(err, errno, "cell: setpriority");
	if (!memory_in_cgroup) {
		/* The warden samples and ends the run at its limit; this stops
		 * what grows faster than it looks. What the template brought is
		 * free. */
		autofile *status = fopen("/proc/self/statm", "re");
		unsigned long data = 0;

		if (!status || fscanf(status, "%*u %*u %*u %*u %*u %lu", &data) != 1)
			return refuse(err, EPROTO, "cell: read /proc/self/statm");
		resources.data_bytes =
			2 * limits.memory_bytes + (uint64_t)data * (uint64_t)sysconf(_SC_PAGESIZE);
	}
	return resources_limit(&resources, err);
}

/* Waits for the word to go. EOF means that nobody needs this cell any more. */
static void park(struct bytes *buffer, struct error *err)
{
	int fds[FRAME_FDS_MAX];
	struct frame frame;
	size_t count = 0;
	int r = frame_receive(CELL_CONTROL, buffer, &frame, fds, &count);

	if (r == 0)
		_exit(0);
	if (r < 0 || frame.type != MESSAGE_GO || count != 0) {
		fail(err, r < 0 ? -r : EBADMSG, "cell: wait for the word to go");
		return;
	}
	apply_limits(&frame, false, &(uint64_t){0}, err);
}

/* Ctrl-C, as the warden sends it: an exception in the code. */
static int heed_interrupts(struct error *err)
{
	PyObject *signals = PyImport_ImportModule("signal");
	PyObject *handler = signals ? PyObject_GetAttrString(signals, "default_int_handler") : NULL;
	PyObject *before =
		handler ? PyObject_CallMethod(signals, "signal", "iO", SIGINT, handler) : NULL;

	Py_XDECREF(signals);
	Py_XDECREF(handler);
	Py_XDECREF(before);
	return before ? 0 : interpreter_error(err, "cell: heed interrupts");
}

/* What a runner must not have of its judge's. Its link, out of the way of code that
 * closes what it did not open. */
static int leave_judge(int link, struct error *err)
{
	int high = fcntl(link, F_DUPFD_CLOEXEC, RUNNER_LINK);

	close(CELL_CONTROL);
	outbox_close_verdict();
	if (high < 0 || setsid() < 0)
		fail(err, errno, "cell: make the runner");
	close(link);
	return high;
}

static _Noreturn void fail_runner(int link, const struct error *err)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_FAILED, 0);

	frame_put_text(&frame, FIELD_TEXT, err->text);
	frame_end(&frame, at);
	frame_send(link, &frame, NULL, 0);
	_exit(1);
}

/* The same for a branch: confined as any runner, and with nothing in it but what the
 * judge had. Python does not run before it has taken over what another session has. */
static _Noreturn void become_blank(int link)
{
	struct error err = {0};
	int listener = -1, high = leave_judge(link, &err);

	if (err.number || confine(&listener, &err) < 0)
		fail_runner(high, &err);
	image_await(high, listener);
}

/* The process that will run a session's code: fenced in once more, beneath its
 * judge, which it cannot reach any more. */
static _Noreturn void become_runner(int link, bool settled)
{
	autobytes frame = {0};
	struct error err = {0};
	int listener = -1, high;
	size_t at;

	PyOS_AfterFork_Child();
	outbox_own();
	high = leave_judge(link, &err);
	if (err.number || (settled && rehearsal_open(&err) < 0) || confine(&listener, &err) < 0)
		fail_runner(high, &err);
	interpreter_prepare_caches();
	if (hygiene_refresh(&err) < 0 || hygiene_streams(&err) < 0 ||
	    stopframes_install(&err) < 0 || heed_interrupts(&err) < 0 ||
	    (settled && rehearse(false, &err) < 0))
		fail_runner(high, &err);
	at = frame_begin(&frame, MESSAGE_PARKED, 0);
	frame_end(&frame, at);
	if (frame_send(high, &frame, &listener, 1) < 0)
		_exit(1);
	close(listener);
	if (run_enter_workspace() < 0)
		_exit(1);
	turn_loop(high);
}

/* The cell of a session: splits into judge and runner (session.c) before any user
 * code. Returns only when that failed. */
static void become_session(const struct frame *fork_cell, bool settled, struct bytes *buffer,
			   struct error *err)
{
	struct process runner = {.pidfd = -1, .socket = -1};
	bool branch = frame_number(fork_cell, FIELD_BRANCH);
	struct span changed = {NULL, 0};
	int pair[2], fds[FRAME_FDS_MAX];
	struct reader fields;
	struct frame frame;
	struct field field;
	size_t count = 0;
	uint64_t memory_bytes = 0;
	int r = apply_limits(fork_cell, true, &memory_bytes, err);

	if (r == 0)
		r = drop_rights(err);
	/* What loses its parent is the judge's to reap, not init's. */
	if (r == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		r = fail(err, errno, "cell: become a subreaper");
	if (r == 0)
		r = fence_in(true, err);
	if (r < 0)
		return;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		fail(err, errno, "cell: socketpair");
		return;
	}
	PyOS_BeforeFork();
	runner.pid = fork();
	if (runner.pid == 0) {
		close(pair[0]);
		if (branch)
			become_blank(pair[1]);
		become_runner(pair[1], settled);
	}
	PyOS_AfterFork_Parent();
	close(pair[1]);
	runner.socket = pair[0];
	if (runner.pid > 0)
		runner.pidfd = pidfd_open(runner.pid, 0);
	if (runner.pidfd < 0) {
		fail(err, errno, "cell: fork the runner");
		return;
	}
	r = filter_install(FILTER_CELL, err);
	if (r < 0)
		return;
	r = frame_receive(runner.socket, buffer, &frame, fds, &count);
	if (r != 1 || frame.type != MESSAGE_PARKED || count != 1) {
		char text[ERROR_TEXT_MAX] = "cell: the runner ended";

		if (r == 1)
			frame_text(&frame, FIELD_TEXT, text, sizeof text);
		refuse(err, EPROTO, "%s", text);
		return;
	}
	fields = frame_fields(&frame);
	while (branch && frame_next_field(&fields, &field) == 1)
		if (field.name == FIELD_DATA)
			changed = field.value;
	if (branch && changed.length == 0) {
		refuse(err, EPROTO, "cell: the branch knows nothing of its template");
		return;
	}
	session_judge(&runner, fds[0], memory_bytes, changed, err);
}

void cell_become(const int *fds, const struct error *failed, const struct frame *fork_cell,
		 bool settled, struct bytes *buffer, struct bytes *ret_request)
{
	struct error err = *failed;
	struct span request;
	enum { SELF, LISTENER };
	int said[2] = {-1, -1};

	if (err.number || take_descriptors(fds, &err) < 0) {
		/* The control socket may still be where it came in. */
		autobytes frame = {0};
		size_t at = frame_begin(&frame, MESSAGE_FAILED, 0);

		frame_put_text(&frame, FIELD_TEXT, err.text);
		frame_end(&frame, at);
		frame_send(fds[FORK_FD_CONTROL], &frame, NULL, 0);
		_exit(1);
	}
	/* By which the warden asks where the code stands. */
	said[SELF] = pidfd_open(getpid(), 0);
	if (said[SELF] < 0) {
		fail(&err, errno, "cell: pidfd_open");
		goto failed;
	}
	if (chdir("/workspace") < 0) {
		fail(&err, errno, "cell: chdir /workspace");
		goto failed;
	}
	if (frame_number(fork_cell, FIELD_SESSION)) {
		close(said[SELF]);
		become_session(fork_cell, settled, buffer, &err);
		goto failed;
	}
	/* While opening for writing costs no notice yet. */
	if (run_open_main(&err) < 0 || (settled && rehearsal_open(&err) < 0) ||
	    drop_rights(&err) < 0 || confine(&said[LISTENER], &err) < 0)
		goto failed;
	interpreter_prepare_caches();
	if (hygiene_refresh(&err) < 0 || hygiene_streams(&err) < 0 || stopframes_install(&err) < 0)
		goto failed;
	/* One that was made for a run that waits already has no time for it. */
	if (settled && LEFT_OUT != MEASURE_CELL_REHEARSAL && rehearse(false, &err) < 0)
		goto failed;
	if (settled) {
		/* Where the word to go will be. */
		volatile uint8_t *first = buffer->data;
		uint8_t byte = *first;

		*first = byte;
		outbox_touch();
	}
	say(MESSAGE_PARKED, NULL, said, 2);
	close(said[SELF]);
	close(said[LISTENER]);
	park(buffer, &err);
	if (err.number)
		goto failed;
	request = outbox_request();
	if (request.length == 0 || bytes_append(ret_request, request.data, request.length) < 0) {
		refuse(&err, EBADMSG, "cell: no request in the mailbox");
		goto failed;
	}
	close(CELL_CONTROL);
	return;
failed:
	say(MESSAGE_FAILED, &err, NULL, 0);
	_exit(1);
}
