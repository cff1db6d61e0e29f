/* SPDX-License-Identifier: Apache-2.0 */
/* init: pid 1 of a cell.
 *
 * Theory of operation. The keeper clones init into fresh user, pid, mount, ipc
 * and uts namespaces. While it still has their capabilities, and before any
 * user code exists, it lays out the cell's writable places; it then gives
 * them all up and hands descriptors of its namespaces to the warden, through
 * which the template's helper lets the main process in. From then on init
 * only reaps orphans. (The main process is the keeper's child: its own parent,
 * the helper, lived in the keeper's pid namespace.) That init is alive keeps
 * the namespace alive: to end a cell the warden kills init, and the kernel
 * kills everybody else.
 *
 * Should: reap, and say when nobody is left.
 * Mustn't: hold a capability, be readable by the cell, or run Python. */
#include "jail/init.h"

#include "base/cleanup.h"
#include "jail/credentials.h"
#include "jail/landlock.h"
#include "jail/mounts.h"
#include "jail/namespaces.h"
#include "jail/syscalls.h"
#include "proto/frame.h"
#include "proto/messages.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void say_failed(const struct init_options *options, const struct error *why)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_INIT_FAILED, options->cell);

	frame_put_text(&frame, FIELD_TEXT, why->text);
	frame_put_number(&frame, FIELD_ERRNO, (uint64_t)why->number);
	frame_end(&frame, at);
	frame_send(options->socket, &frame, NULL, 0);
}

static int write_proc(const char *path, int number, struct error *err)
{
	char text[16];
	int length = snprintf(text, sizeof text, "%d", number);
	autofd fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, (size_t)length) != length)
		return fail(err, errno, "init: write %s", path);
	return 0;
}

/* The main process gets main_pid, which differs from the template's own: with
 * an equal one OpenSSL and tempfile would not notice the fork and repeat what
 * their siblings drew. And no user namespace may be made beneath this one. */
static int set_namespace_limits(const struct init_options *options, struct error *err)
{
	int r = write_proc("/proc/sys/kernel/ns_last_pid", options->main_pid - 1, err);

	if (r < 0)
		return r;
	r = write_proc("/proc/sys/user/max_user_namespaces", 0, err);
	if (r < 0)
		return r;
	if (unshare(CLONE_NEWUSER) == 0)
		return refuse(err, EPROTO, "init: a nested user namespace could be made");
	return 0;
}

static int prepare(const struct init_options *options, int fds[INIT_FD_COUNT + 1],
		   size_t *ret_count, bool own_network, struct error *err)
{
	static const char *const spaces[] = {
		[INIT_FD_USER] = "/proc/self/ns/user", [INIT_FD_PID] = "/proc/self/ns/pid",
		[INIT_FD_MOUNT] = "/proc/self/ns/mnt", [INIT_FD_IPC] = "/proc/self/ns/ipc",
		[INIT_FD_UTS] = "/proc/self/ns/uts",   [INIT_FD_COUNT] = "/proc/self/ns/net",
	};
	int r;

	/* The keeper is not dumpable, and then /proc/self belongs to root. */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	r = credentials_map(SANDBOX_ID, SANDBOX_ID, err);
	if (r < 0)
		return r;
	r = set_namespace_limits(options, err);
	if (r < 0)
		return r;
	if (sethostname("sandbox", 7) < 0 || setdomainname("", 0) < 0)
		return fail(err, errno, "init: set the host name");
	r = mounts_build_cell(options->disk_bytes, &fds[INIT_FD_WORKSPACE], err);
	if (r < 0)
		return r;
	for (size_t i = INIT_FD_USER; i <= INIT_FD_COUNT; i++) {
		if (i == INIT_FD_WORKSPACE || (i == INIT_FD_COUNT && !own_network))
			continue;
		fds[i] = open(spaces[i], O_RDONLY | O_CLOEXEC);
		if (fds[i] < 0)
			return fail(err, errno, "init: open %s", spaces[i]);
	}
	fds[INIT_FD_PIDFD] = pidfd_open(getpid(), 0);
	if (fds[INIT_FD_PIDFD] < 0)
		return fail(err, errno, "init: pidfd_open");
	*ret_count = INIT_FD_COUNT + own_network;
	return credentials_drop(0, err);
}

static void say_orphans_ended(const struct init_options *options)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_ORPHANS_ENDED, options->cell);

	frame_end(&frame, at);
	frame_send(options->socket, &frame, NULL, 0);
}

/* Signals from inside do not reach pid 1 of a namespace unless it has a
 * handler; it has none. SIGCHLD is blocked and waited for. */
static void reap_forever(const struct init_options *options)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	for (;;) {
		pid_t pid;

		if (sigwaitinfo(&child, NULL) < 0 && errno != EINTR)
			_exit(1);
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0 && errno == ECHILD)
			say_orphans_ended(options);
	}
}

static _Noreturn void init_main(struct init_options options, bool own_network)
{
	int fds[INIT_FD_COUNT + 1];
	struct error err = {0};
	autobytes frame = {0};
	size_t count = 0, at;
	sigset_t child;

	prctl(PR_SET_NAME, "execpy-init");
	for (size_t i = 0; i < ARRAY_LENGTH(fds); i++)
		fds[i] = -1;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	/* Nothing of the keeper's comes along: its line to the warden least. */
	if (descriptors_keep(&options.socket, 1, &err) < 0 ||
	    prepare(&options, fds, &count, own_network, &err) < 0 ||
	    filter_install(FILTER_INIT, &err) < 0) {
		say_failed(&options, &err);
		_exit(1);
	}
	at = frame_begin(&frame, MESSAGE_INIT_MADE, options.cell);
	frame_end(&frame, at);
	if (frame_send(options.socket, &frame, fds, count) < 0)
		_exit(1);
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	reap_forever(&options);
	_exit(1);
}

pid_t init_start(const struct init_options *options, struct error *err)
{
	uint64_t flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
	/* Cells of one template share its network namespace, which holds no
	 * interface. That they cannot meet by abstract sockets is Landlock's
	 * doing from ABI 6 on; before, each gets a namespace of its own. */
	bool own_network = landlock_abi() < 6;
	pid_t pid = namespaces_clone(flags | (own_network ? CLONE_NEWNET : 0), NULL, err);

	if (pid == 0)
		init_main(*options, own_network);
	return pid;
}
