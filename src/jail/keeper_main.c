/* SPDX-License-Identifier: Apache-2.0 */
/* keeper_main: what the keeper is once its root stands (see keeper.c).
 *
 * It waits for two kinds of event: messages from the warden, and children that
 * ended. When it ends, the kernel ends every process beneath it; when the warden
 * ends, so does the keeper. Its environment is the template's.
 *
 * Should: be small, and fail each step by name.
 * Mustn't: have a capability, or read anything that a guest can write. */
#include "jail/keeper.h"

#include "base/cleanup.h"
#include "jail/credentials.h"
#include "jail/init.h"
#include "jail/namespaces.h"
#include "jail/syscalls.h"
#include "proto/frame.h"
#include "proto/messages.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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
static _Noreturn void exec_template(int fds[3])
{
	static char *const arguments[] = {(char *)"execpy-guest", NULL};
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
	syscall(SYS_execveat, keep[1], "", arguments, environ, AT_EMPTY_PATH);
	fail(&err, errno, "keeper: execute the guest program");
failed:
	say(keep[0], MESSAGE_FAILED, 0, &err);
	_exit(127);
}

static pid_t make_template(int fds[3], struct error *err)
{
	pid_t pid = fork();

	if (pid < 0)
		return fail(err, errno, "keeper: fork the template");
	if (pid == 0)
		exec_template(fds);
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

static uint64_t microseconds(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000 + (uint64_t)time->tv_usec;
}

/* The template, inits, and the main processes of cells, whose wait status is
 * the kernel's word on how a run ended. */
static void reap(int socket, pid_t template)
{
	struct rusage used;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
		autobytes frame = {0};
		size_t at = frame_begin(
			&frame, pid == template ? MESSAGE_TEMPLATE_ENDED : MESSAGE_CHILD_ENDED, 0);

		frame_put_number(&frame, FIELD_PID, (uint64_t)pid);
		frame_put_number(&frame, FIELD_STATUS, (uint64_t)status);
		frame_put_number(&frame, FIELD_CPU_US,
				 microseconds(&used.ru_utime) + microseconds(&used.ru_stime));
		frame_end(&frame, at);
		frame_send(socket, &frame, NULL, 0);
	}
}

/* One message of the warden's. Its word is trusted, its form is checked. */
static void obey(const struct frame *frame, int *fds, size_t count, pid_t *template)
{
	struct error err = {0};

	switch (frame->type) {
	case MESSAGE_MAKE_TEMPLATE:
		if (count != 3 || *template > 0)
			break;
		*template = make_template(fds, &err);
		if (*template <0)
			say(KEEPER_SOCKET, MESSAGE_FAILED, 0, &err);
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
	say(KEEPER_SOCKET, MESSAGE_FAILED, 0, &err);
	_exit(1);
}

static _Noreturn void keep(int signals)
{
	autobytes buffer = {0};
	pid_t template = 0;
	struct pollfd polled[2] = {
		{.fd = KEEPER_SOCKET, .events = POLLIN},
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
				reap(KEEPER_SOCKET, template);
		}
		if (!polled[0].revents)
			continue;
		if (frame_receive(KEEPER_SOCKET, &buffer, &frame, fds, &count) != 1)
			_exit(0); /* the warden is gone */
		obey(&frame, fds, count, &template);
		for (size_t i = 0; i < count; i++)
			close(fds[i]);
	}
}

int main(void)
{
	struct error err = {0};
	int signals = -1;
	sigset_t child;

	/* To be read only by what could read the keeper before. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) {
		fail(&err, errno, "keeper: dumpable");
		goto failed;
	}
	if (fcntl(KEEPER_SOCKET, F_SETFD, FD_CLOEXEC) < 0)
		return 1; /* started by hand */
	close_range(KEEPER_SOCKET + 1, ~0U, 0);
	prctl(PR_SET_NAME, "execpy-keeper");
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0) {
		fail(&err, errno, "keeper: signalfd");
		goto failed;
	}
	say(KEEPER_SOCKET, MESSAGE_READY, 0, NULL);
	keep(signals);
failed:
	say(KEEPER_SOCKET, MESSAGE_FAILED, 0, &err);
	return 1;
}
