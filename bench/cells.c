/* SPDX-License-Identifier: Apache-2.0 */
/* cells: makes a template and its cells without the rest of the warden, and
 * says what each step took. bench/cells.py drives it and does the sums.
 *
 *   cells GUEST KEEPER FONTS TEMPLATE
 *
 * reads commands, a line each, and answers each with one line of JSON:
 *
 *   park COUNT             makes so many cells and keeps them parked
 *   run TIMES REST_MS CODE makes a cell, lets it rest so long, runs the code in
 *                          it, waits for its end; REST_MS -1: no rest at all
 *   drop                   ends all parked cells
 *   hold CODE              as run, but lets the caller look at the cell before:
 *                          says its pid and waits for a line */
#include "base/cleanup.h"
#include "jail/credentials.h"
#include "jail/keeper.h"
#include "policy/limits.h"
#include "policy/policy.h"
#include "policy/templates.h"
#include "proto/frame.h"
#include "proto/mailbox.h"
#include "proto/messages.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ID        1900000002u /* the keeper's, if the caller is root */
#define CELLS_MAX 2000

struct cell {
	int init_pidfd, main_pidfd, control, mailbox, verdict, output;
	pid_t pid; /* as the keeper knows it */
	/* Microseconds: the making of init; from the word to fork until the template
	 * says it has, and until the cell says that it is parked. */
	int64_t init_us, fork_us, park_us;
};

static int keeper_socket, template_socket, keeper_program;
static struct cell parked[CELLS_MAX];
static size_t parked_count;
static struct bytes buffer;
static int next_pid = 301;

static _Noreturn void give_up(const char *what)
{
	fprintf(stderr, "cells: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void pair(int sockets[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
		give_up("socketpair");
}

/* The next frame, which must be of this type. Descriptors that nobody asked for
 * are closed. */
static void expect(int socket, enum message type, struct frame *frame, int *fds, size_t *count)
{
	int dropped[FRAME_FDS_MAX];
	size_t dropped_count = 0;
	char text[400] = "";
	int r = frame_receive(socket, &buffer, frame, fds ? fds : dropped,
			      fds ? count : &dropped_count);

	for (size_t i = 0; i < dropped_count; i++)
		close(dropped[i]);
	if (r == 1 && frame->type == type)
		return;
	if (r == 1)
		frame_text(frame, FIELD_TEXT, text, sizeof text);
	fprintf(stderr, "cells: message %d instead of %d: %s\n", r == 1 ? frame->type : r, type,
		text);
	exit(1);
}

static void send_frame(int socket, struct bytes *frame, size_t at, const int *fds, size_t count)
{
	if (frame_end(frame, at) < 0 || frame_send(socket, frame, fds, count) < 0)
		give_up("send");
}

static void start_template(int guest, int fonts, const char *font_name,
			   const struct template_info *info)
{
	/* As warden/template.c sets it. */
	static char *const environment[] = {
		(char *)"HOME=/workspace",
		(char *)"PATH=/usr/local/bin:/usr/bin:/bin",
		(char *)"TMPDIR=/tmp",
		(char *)"LANG=C.UTF-8",
		(char *)"LC_ALL=C.UTF-8",
		(char *)"MPLBACKEND=module://_execpy_agg",
		(char *)"MPLCONFIGDIR=/var/cache/matplotlib",
		(char *)"OMP_NUM_THREADS=1",
		(char *)"OPENBLAS_NUM_THREADS=1",
		(char *)"NUMEXPR_NUM_THREADS=1",
		(char *)"NUMEXPR_MAX_THREADS=1",
		NULL,
	};
	struct keeper_options options = {
		.outside_uid = geteuid(),
		.outside_gid = getegid(),
		.font_list = fonts,
		.font_list_name = font_name,
		.program = keeper_program,
		.environment = environment,
	};
	int keeper[2], template[2], pidfd, fds[3];
	autobytes make = {0};
	autobytes preload = {0};
	struct error err = {0};
	struct frame frame;
	int64_t began = now_us();
	size_t at;

	pair(keeper);
	pair(template);
	options.socket = keeper[1];
	if (keeper_start(&options, &pidfd, &err) < 0) {
		fprintf(stderr, "cells: %s\n", err.text);
		exit(1);
	}
	close(keeper[1]);
	keeper_socket = keeper[0];
	template_socket = template[0];
	expect(keeper_socket, MESSAGE_READY, &frame, NULL, NULL);
	fds[0] = guest;
	fds[1] = template[1];
	fds[2] = STDERR_FILENO;
	at = frame_begin(&make, MESSAGE_MAKE_TEMPLATE, 0);
	send_frame(keeper_socket, &make, at, fds, 3);
	close(template[1]);
	at = frame_begin(&preload, MESSAGE_PRELOAD, 0);
	frame_put_text(&preload, FIELD_NAME, info->name);
	for (size_t i = 0; info->modules[i]; i++)
		frame_put_text(&preload, FIELD_MODULE, info->modules[i]);
	frame_put_text(&preload, FIELD_CODE, info->warm_up);
	send_frame(template_socket, &preload, at, NULL, 0);
	expect(template_socket, MESSAGE_LOADED, &frame, NULL, NULL);
	printf("{\"loaded_us\": %" PRId64 "}\n", now_us() - began);
}

static void make_cell(struct cell *cell)
{
	int fds[FRAME_FDS_MAX], entry[FORK_FD_CGROUP], from_init[FRAME_FDS_MAX], init[2];
	int control[2], output[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);
	size_t count = 0, at;
	autobytes make = {0};
	autobytes fork = {0};
	struct error err = {0};
	struct frame frame;
	int64_t began = now_us();

	pair(init);
	at = frame_begin(&make, MESSAGE_MAKE_INIT, 1);
	frame_put_number(&make, FIELD_SIZE, 64 * MIB);
	frame_put_number(&make, FIELD_PID, (uint64_t)next_pid++);
	send_frame(keeper_socket, &make, at, &init[1], 1);
	close(init[1]);
	expect(init[0], MESSAGE_INIT_MADE, &frame, from_init, &count);
	close(init[0]);
	cell->init_us = now_us() - began;
	cell->init_pidfd = from_init[INIT_FD_PIDFD];
	cell->mailbox = mailbox_create(&err);
	cell->verdict = verdict_create(&err);
	pair(control);
	if (pipe2(output, O_CLOEXEC) < 0 || cell->mailbox < 0 || cell->verdict < 0)
		give_up("pipe");
	entry[FORK_FD_USER] = from_init[INIT_FD_USER];
	entry[FORK_FD_PID] = from_init[INIT_FD_PID];
	entry[FORK_FD_MOUNT] = from_init[INIT_FD_MOUNT];
	entry[FORK_FD_IPC] = from_init[INIT_FD_IPC];
	entry[FORK_FD_UTS] = from_init[INIT_FD_UTS];
	entry[FORK_FD_STDIN] = null;
	entry[FORK_FD_STDOUT] = output[1];
	entry[FORK_FD_STDERR] = STDERR_FILENO;
	entry[FORK_FD_CONTROL] = control[1];
	entry[FORK_FD_MAILBOX] = cell->mailbox;
	entry[FORK_FD_VERDICT] = cell->verdict;
	began = now_us();
	at = frame_begin(&fork, MESSAGE_FORK_CELL, 1);
	send_frame(template_socket, &fork, at, entry, FORK_FD_CGROUP);
	expect(template_socket, MESSAGE_FORKED, &frame, NULL, NULL);
	cell->fork_us = now_us() - began;
	cell->pid = (pid_t)frame_number(&frame, FIELD_PID);
	count = 0;
	expect(control[0], MESSAGE_PARKED, &frame, fds, &count);
	cell->park_us = now_us() - began;
	cell->main_pidfd = fds[0];
	for (size_t i = 1; i < count; i++)
		close(fds[i]);
	cell->control = control[0];
	cell->output = output[0];
	close(output[1]);
	close(control[1]);
	close(null);
	for (size_t i = INIT_FD_USER; i < INIT_FD_COUNT; i++)
		close(from_init[i]);
}

/* The keeper tells of a main process's end. */
static void wait_for_end(const struct cell *cell)
{
	struct frame frame;

	do
		expect(keeper_socket, MESSAGE_CHILD_ENDED, &frame, NULL, NULL);
	while ((pid_t)frame_number(&frame, FIELD_PID) != cell->pid);
}

/* Returns the microseconds until all processes were gone. */
static int64_t end_cell(struct cell *cell)
{
	struct pollfd ended = {.fd = cell->init_pidfd, .events = POLLIN};
	int64_t began = now_us(), took;

	pidfd_send_signal(cell->init_pidfd, SIGKILL, NULL, 0);
	while (poll(&ended, 1, -1) < 0)
		;
	took = now_us() - began;
	close(cell->init_pidfd);
	close(cell->main_pidfd);
	close(cell->control);
	close(cell->mailbox);
	close(cell->verdict);
	close(cell->output);
	return took;
}

static void write_request(const struct cell *cell, const char *code)
{
	struct policy policy = policy_profile(PROFILE_STRICT);
	autobytes encoded = {0};
	autobytes frame = {0};
	struct error err = {0};
	size_t at = frame_begin(&frame, MESSAGE_REQUEST, 1);

	policy_encode(&policy, &encoded);
	frame_put(&frame, FIELD_POLICY, encoded.data, encoded.length);
	frame_put_text(&frame, FIELD_CODE, code);
	frame_put_number(&frame, FIELD_STDIN, 0);
	frame_put_number(&frame, FIELD_WALL_US, 5000000);
	if (frame_end(&frame, at) < 0 || mailbox_write_request(cell->mailbox, &frame, &err) < 0)
		give_up(err.text);
}

static void say_go(const struct cell *cell)
{
	struct limits limits = limits_default();
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_GO, 0);

	limits_encode(&limits, &frame, FIELD_LIMITS);
	frame_put_number(&frame, FIELD_MEMORY_PEAK, 1);
	frame_put_number(&frame, FIELD_CPU_US, 1);
	send_frame(cell->control, &frame, at, NULL, 0);
}

static int pid_of(int pidfd)
{
	char path[64], line[128];
	autofile *info = NULL;
	int pid = 0;

	snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
	info = fopen(path, "re");
	while (info && fgets(line, sizeof line, info))
		if (sscanf(line, "Pid: %d", &pid) == 1)
			break;
	return pid;
}

/* What the scheduler says a process of ours has used, in microseconds. */
static int64_t used_us(int pid)
{
	char path[64];
	autofile *file = NULL;
	int64_t ns = 0;

	snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
	file = fopen(path, "re");
	if (!file || fscanf(file, "%" SCNd64, &ns) != 1)
		return -1;
	return ns / 1000;
}

/* How many pages it had to be given. */
static int64_t faults_of(int pid)
{
	char path[64], line[1024];
	autofile *file = NULL;
	const char *after;
	int64_t faults = -1;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	file = fopen(path, "re");
	after = file && fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
	if (after)
		sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*d %" SCNd64, &faults);
	return faults;
}

/* One run: prints its figures. */
static void run_once(const char *code, int rest_ms, bool hold)
{
	struct cell cell = {0};
	char output[4096], line[16];
	int64_t before = -1, faults = -1, began, first = 0, closed, ended;
	size_t length = 0;
	ssize_t r;

	make_cell(&cell);
	if (rest_ms >= 0) {
		usleep((useconds_t)rest_ms * 1000);
		before = used_us(pid_of(cell.main_pidfd));
		faults = faults_of(pid_of(cell.main_pidfd));
	}
	write_request(&cell, code);
	if (hold) {
		printf("{\"pid\": %d}\n", pid_of(cell.main_pidfd));
		fflush(stdout);
		if (!fgets(line, sizeof line, stdin))
			exit(1);
	}
	began = now_us();
	say_go(&cell);
	while ((r = read(cell.output, output + length, sizeof output - length - 1)) > 0) {
		if (!first)
			first = now_us();
		length += (size_t)r;
		if (length == sizeof output - 1)
			length = 0;
	}
	closed = now_us();
	wait_for_end(&cell);
	ended = now_us();
	output[length] = '\0';
	for (char *at = output; *at; at++)
		if (*at == '\n' || *at == '"' || *at == '\\')
			*at = ' ';
	printf("{\"init_us\": %" PRId64 ", \"fork_us\": %" PRId64 ", \"park_us\": %" PRId64
	       ", \"parked_cpu_us\": %" PRId64 ", \"parked_faults\": %" PRId64
	       ", \"first_us\": %" PRId64 ", \"closed_us\": %" PRId64 ", \"ended_us\": %" PRId64
	       ", \"gone_us\": %" PRId64 ", \"output\": \"%s\"}\n",
	       cell.init_us, cell.fork_us, cell.park_us, before, faults, first ? first - began : -1,
	       closed - began, ended - began, end_cell(&cell), output);
}

/* Code comes on one line: the two characters \\n stand for a newline. */
static char *unfold(char *code)
{
	for (char *at = code; (at = strstr(at, "\\n")); at++) {
		at[0] = '\n';
		memmove(at + 1, at + 2, strlen(at + 1));
	}
	return code;
}

static void obey(char *line)
{
	char *code;
	int times = 0, rest = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "park %d", &times) == 1) {
		while (times-- > 0 && parked_count < CELLS_MAX)
			make_cell(&parked[parked_count++]);
		printf("{\"parked\": %zu}\n", parked_count);
	} else if (sscanf(line, "run %d %d", &times, &rest) == 2) {
		code = unfold(strchr(strchr(line + 4, ' ') + 1, ' ') + 1);
		while (times-- > 0)
			run_once(code, rest, false);
	} else if (strncmp(line, "hold ", 5) == 0) {
		run_once(unfold(line + 5), 30, true);
	} else if (strcmp(line, "drop") == 0) {
		while (parked_count > 0) {
			end_cell(&parked[--parked_count]);
			wait_for_end(&parked[parked_count]);
		}
		printf("{\"parked\": 0}\n");
	} else {
		fprintf(stderr, "cells: what is \"%s\"?\n", line);
		exit(1);
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const struct template_info *info = argc == 5 ? template_find(argv[4]) : NULL;
	char line[8192];
	const char *font_name;
	struct error err = {0};
	int guest, fonts;

	if (!info) {
		fprintf(stderr, "usage: cells GUEST KEEPER FONTS TEMPLATE\n");
		return 1;
	}
	guest = open(argv[1], O_RDONLY | O_CLOEXEC);
	keeper_program = open(argv[2], O_RDONLY | O_CLOEXEC);
	fonts = open(argv[3], O_RDONLY | O_CLOEXEC);
	font_name = strrchr(argv[3], '/');
	if (guest < 0 || keeper_program < 0)
		give_up("the programs of the jail");
	if (geteuid() == 0 && credentials_become(ID, ID, &err) < 0)
		give_up(err.text);
	start_template(guest, fonts, font_name ? font_name + 1 : argv[3], info);
	fflush(stdout);
	while (fgets(line, sizeof line, stdin))
		obey(line);
	return 0;
}
