/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint: a frozen fork of a session's runner, to return to.
 *
 * Theory of operation. The runner forks between two runs; the child stops in C
 * before any Python runs in it, and waits. When it is told to resume, it forks a
 * runner and waits on: so a checkpoint can be returned to many times. The process
 * that ran the user's code stays the runner, with its threads and descriptors:
 * a run that succeeds pays for a fork and loses nothing.
 *
 * Either fork is made by a helper that shares the memory and ends at once, as the
 * template's does: so the judge, which adopts what lost its parent, and not the
 * user's os.wait() sees the child end.
 *
 * The parent changes after the fork, so whatever both would share is parted in the
 * child: open files get offsets of their own, shared memory is copied, pipes and
 * sockets become ends of a connection that is closed, since a checkpoint that
 * holds one would keep its other side from ever seeing an end.
 *
 * All of this runs in memory that user code may have written to: it decides
 * nothing but what this session finds when it returns. */
#include "guest/image.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* As clone_sharing_memory() of the template, by the older call, since a cell's
 * filter cannot look into clone3's arguments. Without a signal at its end: the
 * user's wait() does not see the helper. */
static inline __attribute__((always_inline)) long clone_helper(void)
{
	const unsigned long flags = CLONE_VM | CLONE_VFORK;
	long result;
#if defined(__x86_64__)
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"((long)SYS_clone), "D"(flags), "S"(0L), "d"(0L), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = SYS_clone;
	register long x0 __asm__("x0") = (long)flags;
	register long x1 __asm__("x1") = 0;
	register long x2 __asm__("x2") = 0;
	register long x3 __asm__("x3") = 0;
	register long x4 __asm__("x4") = 0;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
			 : "memory");
	result = x0;
#else
#error "clone for this processor, please"
#endif
	return result;
}

/* Returns 0 in the child, 1 in the caller, or a negative errno there; and what
 * the fork cost. */
static __attribute__((noinline)) int fork_adopted(uint64_t *ret_cpu_us)
{
	volatile pid_t child = -1;
	volatile int number = ECHILD; /* unless the helper says more: it may be killed */
	struct rusage used = {0};
	int status;
	long helper = clone_helper();

	if (helper == 0) {
		pid_t pid = fork();

		if (pid == 0)
			return 0; /* a whole copy, on this same stack */
		child = pid;
		number = errno;
		_exit(0);
	}
	if (helper < 0)
		return (int)helper;
	while (wait4((pid_t)helper, &status, __WALL, &used) < 0 && errno == EINTR)
		;
	*ret_cpu_us = (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
		      (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
	return child < 0 ? -number : 1;
}

static unsigned count_threads(void)
{
	PyThreadState *state = PyInterpreterState_ThreadHead(PyInterpreterState_Get());
	unsigned count = 0;

	for (; state; state = PyThreadState_Next(state))
		count++;
	return count;
}

/* --- what parent and child would share ------------------------------------ */

/* An end whose other end is closed: reads end, writes fail. */
static int dead_end(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	close(pair[1]);
	return pair[0];
}

static void replace(int fd, int by)
{
	int flags = fcntl(fd, F_GETFD);

	dup3(by, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
}

/* The same file with an offset of its own; one without a name stays shared. */
static void part_file(int fd, const struct stat *info)
{
	char link[64], path[PATH_MAX];
	off_t offset = lseek(fd, 0, SEEK_CUR);
	int flags = fcntl(fd, F_GETFL);
	struct stat found;
	ssize_t length;
	autofd again = -1;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof path - 1);
	if (length <= 0 || flags < 0)
		return;
	path[length] = '\0';
	again = open(path, (flags & (O_ACCMODE | O_APPEND | O_NONBLOCK)) | O_CLOEXEC | O_NOCTTY);
	if (again < 0 || fstat(again, &found) < 0 || found.st_ino != info->st_ino ||
	    found.st_dev != info->st_dev)
		return;
	if (offset > 0)
		lseek(again, offset, SEEK_SET);
	replace(fd, again);
}

/* One that others find by its address, or a connection to one: it cannot be in two
 * places. */
static bool has_address(int fd)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof address;

	if (getsockname(fd, (struct sockaddr *)&address, &length) < 0)
		return false;
	if (address.ss_family != AF_UNIX || length > sizeof address.ss_family)
		return true;
	length = sizeof address;
	return getpeername(fd, (struct sockaddr *)&address, &length) == 0 &&
	       length > sizeof address.ss_family;
}

/* Why no branch can be made of this state, or "". */
static char obstacle[64];

/* Returns how many were lost. `keep` stays as it is. */
static unsigned part_descriptors(int keep)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;
	int numbers[1024], dead;
	size_t count = 0;
	unsigned lost = 0;

	while (directory && (entry = readdir(directory)) && count < ARRAY_LENGTH(numbers)) {
		int fd = text_number(entry->d_name);

		if (fd > 2 && fd != keep && fd != dirfd(directory))
			numbers[count++] = fd;
	}
	if (directory)
		closedir(directory);
	dead = count > 0 ? dead_end() : -1;
	for (size_t i = 0; i < count; i++) {
		struct stat info;

		if (fstat(numbers[i], &info) < 0 || S_ISDIR(info.st_mode) || S_ISCHR(info.st_mode))
			continue;
		if (S_ISREG(info.st_mode)) {
			part_file(numbers[i], &info);
		} else if (dead >= 0) {
			if (S_ISSOCK(info.st_mode) && has_address(numbers[i]))
				snprintf(obstacle, sizeof obstacle,
					 "a socket is open (descriptor %d)", numbers[i]);
			replace(numbers[i], dead);
			lost++;
		}
	}
	close_fd(&dead);
	return lost;
}

/* Memory that is shared and has no name, such as mmap(-1, n)'s. */
static void part_memory(void)
{
	autofile *maps = fopen("/proc/self/maps", "re");
	char line[512];

	while (maps && fgets(line, sizeof line, maps)) {
		uintptr_t from, to;
		char rights[5];
		void *copy, *fresh;
		size_t size;

		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, rights) != 3 ||
		    rights[3] != 's' || rights[1] != 'w' || !strstr(line, "/dev/zero"))
			continue;
		size = to - from;
		copy = malloc(size);
		if (!copy)
			continue;
		memcpy(copy, (void *)from, size);
		fresh = mmap((void *)from, size, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		if (fresh != MAP_FAILED)
			memcpy(fresh, copy, size);
		free(copy);
	}
}

/* --- parking and resuming ------------------------------------------------- */

/* A message on the stack: what is being compared and told (image_send.c) must not
 * change by allocating. */
#define MESSAGE_ON_STACK(space)                                                      \
	{                                                                            \
		.data = (space), .capacity = sizeof(space), .ceiling = sizeof(space) \
	}

/* "I am here", with a descriptor of the process itself. */
static int say_here(int socket, const char *lost, uint64_t cpu_us)
{
	uint8_t space[512];
	struct bytes frame = MESSAGE_ON_STACK(space);
	size_t at = frame_begin(&frame, MESSAGE_PARKED, 0);
	autofd self = pidfd_open(getpid(), 0);

	if (lost[0])
		frame_put_text(&frame, FIELD_NOTE, lost);
	frame_put_number(&frame, FIELD_CPU_US, cpu_us);
	frame_end(&frame, at);
	return self < 0 ? -errno : frame_send(socket, &frame, &self, 1);
}

static int say_refused(int socket, const char *why)
{
	uint8_t space[512];
	struct bytes frame = MESSAGE_ON_STACK(space);
	size_t at = frame_begin(&frame, MESSAGE_FAILED, 0);

	frame_put_text(&frame, FIELD_TEXT, why);
	frame_end(&frame, at);
	return frame_send(socket, &frame, NULL, 0);
}

/* The new runner: what a fork of CPython needs, and that it is not its sibling, unless
 * in the random numbers that it draws. */
static void become_runner(const sigset_t *signals, const char *lost, int link, bool same_random)
{
	PyObject *random = same_random ? hygiene_keep_random() : NULL;
	struct error err = {0};
	int r;

	sigprocmask(SIG_SETMASK, signals, NULL);
	PyOS_AfterFork_Child();
	outbox_own();
	r = same_random ? hygiene_refresh_but_random(random, &err) : hygiene_refresh(&err);
	if (r < 0 || stopframes_install(&err) < 0) {
		say_refused(link, err.text);
		_exit(1);
	}
	turn_forget_loop();
	if (say_here(link, lost, 0) < 0)
		_exit(1);
	hotpages_after_fork();
}

/* What was killed, a fork bomb, say, still counts until it is dead. */
static int fork_patiently(int patience_ms, uint64_t *ret_cpu_us)
{
	const struct timespec moment = {0, 1000000};
	int r = -EAGAIN;

	for (int i = 0; r == -EAGAIN && i < patience_ms; i++) {
		if (i > 0)
			nanosleep(&moment, NULL);
		r = fork_adopted(ret_cpu_us);
	}
	return r;
}

/* First, whether a branch can be made, and what it will take; then, with a pipe, all
 * that this process is. */
static void take_part(int socket, const struct frame *frame, int *fds, size_t count)
{
	struct span wanted = {NULL, 0};
	struct reader fields = frame_fields(frame);
	struct field field;

	if (count == 0) {
		const char *why = obstacle[0] ? obstacle : image_obstacle();

		if (why)
			say_refused(socket, why);
		else
			say_here(socket, "", 0);
		if (!why)
			image_compare();
		return;
	}
	while (frame_next_field(&fields, &field) == 1)
		if (field.name == FIELD_DATA)
			wanted = field.value;
	/* True in a process of the branch, which is no different from now on. */
	if (!image_send(fds[0], wanted, socket))
		close(fds[0]);
	say_here(socket, "", 0);
}

/* Waits for the word to resume; returns in the runners that are forked then, with
 * their link to the judge. */
static int park(int socket)
{
	struct bytes buffer = MESSAGE_ON_STACK(image_area.message);
	char lost[100] = "";
	sigset_t all, before;
	unsigned count;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	setsid(); /* what is sent to the group of the runner is not meant */
	obstacle[0] = '\0';
	count = part_descriptors(socket);
	part_memory();
	if (count > 0)
		snprintf(lost, sizeof lost, "%u open pipe%s, socket%s or the like", count,
			 count == 1 ? "" : "s", count == 1 ? "" : "s");
	if (say_here(socket, "", 0) < 0)
		_exit(1);
	for (;;) {
		int fds[FRAME_FDS_MAX], link, r;
		struct frame frame;
		size_t fd_count = 0;
		uint64_t cpu_us;

		r = frame_receive(socket, &buffer, &frame, fds, &fd_count);
		if (r == 1 && frame.type == MESSAGE_BRANCH && fd_count <= 1) {
			take_part(socket, &frame, fds, fd_count);
			continue;
		}
		if (r != 1 || frame.type != MESSAGE_RESUME || fd_count != 1)
			_exit(0); /* nobody needs it any more */
		link = fds[0];
		image_will_fork();
		r = fork_patiently(SESSION_FORK_WAIT_MS, &cpu_us);
		if (r == 0) {
			close(socket);
			become_runner(&before, lost, link, frame_number(&frame, FIELD_MORE));
			return link;
		}
		if (r < 0)
			say_refused(link, "the checkpoint could not fork");
		close(link);
	}
}

/* The runner is back from making one, or from refusing to. */
static void say_back(int link, uint64_t cpu_us)
{
	autobytes frame = {0};
	size_t at = frame_begin(&frame, MESSAGE_CHECKPOINT, 0);

	frame_put_number(&frame, FIELD_CPU_US, cpu_us);
	frame_end(&frame, at);
	frame_send(link, &frame, NULL, 0);
}

int checkpoint_make(int link, int socket)
{
	uint64_t cpu_us = 0;
	int r;

	/* The others may hold locks that nobody would ever give back. */
	if (count_threads() > 1) {
		say_refused(socket, "threads were running");
	} else {
		hotpages_before_fork();
		PyOS_BeforeFork();
		r = fork_patiently(SESSION_FORK_WAIT_MS / 50, &cpu_us);
		if (r == 0) {
			close(link);
			return park(socket);
		}
		PyOS_AfterFork_Parent();
		if (r < 0)
			say_refused(socket, "no process could be forked");
	}
	close(socket);
	say_back(link, cpu_us);
	hotpages_after_fork();
	return link;
}
