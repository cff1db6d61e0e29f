/* SPDX-License-Identifier: Apache-2.0 */
/* keeper: pid 1 of a template's jail.
 *
 * Theory of operation. The warden clones the keeper into fresh namespaces. The
 * keeper maps the one id, builds the root, and gives up all capabilities: what
 * remains to be done (making a template, making inits) needs none, because a
 * new user namespace brings its own. It then waits for two kinds of event:
 * messages from the warden, and children that ended. When it ends, the kernel
 * ends every process beneath it; when the warden ends, so does the keeper.
 *
 * Should: be small, and fail each step by name.
 * Mustn't: exec, keep a capability, or read anything that a guest can write. */
#include "jail/keeper.h"

#include "base/cleanup.h"
#include "jail/credentials.h"
#include "jail/init.h"
#include "jail/mounts.h"
#include "jail/namespaces.h"
#include "jail/resources.h"
#include "jail/syscalls.h"
#include "proto/frame.h"
#include "proto/messages.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(int socket, enum message type, uint64_t id, const struct error *why)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, (uint16_t)type, id);

	if (why) {
		frame_put_text(&frame, FIELD_TEXT, why->text);
		frame_put_number(&frame, FIELD_ERRNO, (uint64_t)why->number);
	}
	frame_end(&frame, at);
	frame_send(socket, &frame, NULL, 0);
}

/* In the template's process, before its program: fds are the program, the
 * template's socket and the log that becomes its stdout and stderr. */
static _Noreturn void exec_template(const struct keeper_options *options, int fds[3])
{
	enum { PROGRAM, SOCKET, LOG };
	int keep[2] = {fds[SOCKET], fds[PROGRAM]};
	struct error err = {0};
	sigset_t none;
	int null;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, 0) < 0 || dup2(fds[LOG], 1) < 0 || dup2(fds[LOG], 2) < 0) {
		fail(&err, errno, "keeper: the template's standard streams");
		goto failed;
	}
	if (descriptors_keep(keep, 2, &err) < 0 || fcntl(keep[0], F_SETFD, 0) < 0)
		goto failed;
	/* Not after exec: the jail's own libraries are loaded under it, too. */
	if (credentials_bound(&err) < 0 || filter_install(FILTER_TEMPLATE, &err) < 0)
		goto failed;
	syscall(SYS_execveat, keep[1], "", options->arguments, options->environment, AT_EMPTY_PATH);
	fail(&err, errno, "keeper: execute the guest program");
failed:
	say(keep[0], MESSAGE_FAILED, 0, &err);
	_exit(127);
}

static pid_t make_template(const struct keeper_options *options, int fds[3], struct error *err)
{
	pid_t pid = fork();

	if (pid < 0)
		return fail(err, errno, "keeper: fork the template");
	if (pid == 0)
		exec_template(options, fds);
	return pid;
}

static int make_init(const struct frame *frame, int socket, struct error *err)
{
	struct init_options init = {.cell = frame->id, .socket = socket};
	struct reader fields = frame_fields(frame);
	struct field field;
	pid_t pid;

	while (frame_next_field(&fields, &field) == 1) {
		uint64_t number = 0;

		if (field_number(&field, &number) < 0)
			return refuse(err, EBADMSG, "keeper: bad MAKE_INIT");
		if (field.name == FIELD_SIZE)
			init.disk_bytes = number;
		else if (field.name == FIELD_PID)
			init.main_pid = (int)number;
	}
	if (!reader_ok(&fields) || init.main_pid < 2 || init.disk_bytes == 0)
		return refuse(err, EBADMSG, "keeper: bad MAKE_INIT");
	pid = init_start(&init, err);
	return pid < 0 ? (int)pid : 0;
}

/* The template, inits, and the main processes of cells, whose wait status is
 * the kernel's word on how a run ended. */
static void reap(int socket, pid_t template)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		autobytes frame = {0};
		size_t at = frame_begin(
			&frame, pid == template ? MESSAGE_TEMPLATE_ENDED : MESSAGE_CHILD_ENDED, 0);

		frame_put_number(&frame, FIELD_PID, (uint64_t)pid);
		frame_put_number(&frame, FIELD_STATUS, (uint64_t)status);
		frame_end(&frame, at);
		frame_send(socket, &frame, NULL, 0);
	}
}

/* One message of the warden's. Its word is trusted, its form is checked. */
static void obey(const struct keeper_options *options, const struct frame *frame, int *fds,
		 size_t count, pid_t *template)
{
	struct error err = {0};

	switch (frame->type) {
	case MESSAGE_MAKE_TEMPLATE:
		if (count != 3 || *template > 0)
			break;
		*template = make_template(options, fds, &err);
		if (*template <0)
			say(options->socket, MESSAGE_FAILED, 0, &err);
		return;
	case MESSAGE_MAKE_INIT:
		if (count != 1)
			break;
		if (make_init(frame, fds[0], &err) < 0)
			say(fds[0], MESSAGE_INIT_FAILED, frame->id, &err);
		return;
	default:
		break;
	}
	refuse(&err, EBADMSG, "keeper: message %d is not for now", frame->type);
	say(options->socket, MESSAGE_FAILED, 0, &err);
	_exit(1);
}

static _Noreturn void keep(const struct keeper_options *options, int signals)
{
	autobytes buffer = {0};
	pid_t template = 0;
	struct pollfd polled[2] = {
		{.fd = options->socket, .events = POLLIN},
		{.fd = signals, .events = POLLIN},
	};

	for (;;) {
		int fds[FRAME_FDS_MAX];
		struct frame frame;
		size_t count = 0;

		if (poll(polled, 2, -1) < 0 && errno != EINTR)
			_exit(1);
		if (polled[1].revents) {
			struct signalfd_siginfo info;

			if (read(signals, &info, sizeof info) > 0)
				reap(options->socket, template);
		}
		if (!polled[0].revents)
			continue;
		if (frame_receive(options->socket, &buffer, &frame, fds, &count) != 1)
			_exit(0); /* the warden is gone */
		obey(options, &frame, fds, count, &template);
		for (size_t i = 0; i < count; i++)
			close(fds[i]);
	}
}

static int keep_descriptors(struct keeper_options *options, struct error *err)
{
	int keep[2] = {options->socket, options->font_list};
	int r = descriptors_keep(keep, options->font_list >= 0 ? 2 : 1, err);

	options->socket = keep[0];
	options->font_list = keep[1];
	return r;
}

static _Noreturn void keeper_main(struct keeper_options options)
{
	struct error err = {0};
	int signals = -1;
	sigset_t child;

	/* Its parent may have died in between: then the socket says so. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0) {
		fail(&err, errno, "keeper: ask to die with the warden");
		goto failed;
	}
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	if (keep_descriptors(&options, &err) < 0 || resources_reset(&err) < 0 ||
	    credentials_map(options.outside_uid, options.outside_gid, &err) < 0)
		goto failed;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0) {
		fail(&err, errno, "keeper: signalfd");
		goto failed;
	}
	if (sethostname("sandbox", 7) < 0) {
		fail(&err, errno, "keeper: set the host name");
		goto failed;
	}
	if (mounts_build_root(options.font_list, options.font_list_name, &err) < 0 ||
	    credentials_drop(0, &err) < 0)
		goto failed;
	close_fd(&options.font_list);
	say(options.socket, MESSAGE_READY, 0, NULL);
	keep(&options, signals);
failed:
	say(options.socket, MESSAGE_FAILED, 0, &err);
	_exit(1);
}

pid_t keeper_start(const struct keeper_options *options, int *ret_pidfd, struct error *err)
{
	uint64_t flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
			 CLONE_NEWCGROUP;
	pid_t pid;

#ifndef UNSAFE_WITHOUT_NETWORK
	flags |= CLONE_NEWNET;
#endif
	pid = namespaces_clone(flags, ret_pidfd, err);
	if (pid == 0)
		keeper_main(*options);
	return pid;
}
