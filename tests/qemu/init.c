/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init: pid 1 of the QEMU guest; runs one command on the host's files and powers off.
 *
 * Theory of operation
 * -------------------
 * prepare.sh puts this program, the kernel's modules and their order into an initramfs; run.sh
 * appends a second archive with the one file /request. The order of the story:
 *
 *   1. load the modules that the share and the ports need;
 *   2. mount the host's root (virtiofs, read-only) below an overlay whose upper side is a tmpfs,
 *      so that the command may write where it likes and the host sees nothing of it;
 *   3. mount proc, sys, dev, run and cgroup2 with every controller handed down, and make the
 *      overlay the root;
 *   4. run the command with its output on the virtio port "output", reap what is left to pid 1,
 *      and keep the deadline;
 *   5. write "TOKEN STATUS" to the virtio port "status" and power off.
 *
 * The token is random and only in the request: a status without it, or no status at all, is a
 * failure of the harness and never taken for one of the command. What this program itself has to
 * say goes to the serial console, which run.sh shows when there is no status.
 *
 * The request is a list of strings, each ended by NUL:
 *   token, timeout in seconds, directory, count of arguments, arguments, environment.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_MAX_BYTES   (1024 * 1024)
#define REQUEST_MAX_STRINGS 4096
#define PORT_WAIT_MS        20000
#define STATUS_TIMEOUT      124
#define STATUS_CANNOT_RUN   126

struct request {
	const char *token;
	long timeout_s;
	const char *directory;
	char **arguments;
	char **environment;
};

static _Noreturn void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

/* Says on the console which step failed, and ends the machine without a status. */
static _Noreturn void fail(const char *step, const char *what)
{
	dprintf(STDERR_FILENO, "guest init: %s %s: %s\n", step, what, strerror(errno));
	power_off();
}

static void make_directory(const char *path)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		fail("mkdir", path);
}

static void mount_on(const char *type, const char *source, const char *target, unsigned long flags,
		     const char *options)
{
	make_directory(target);
	if (mount(source, target, type, flags, options) < 0)
		fail("mount", target);
}

/* Reads all of a small file; the caller owns the text, which is ended by NUL. */
static char *read_file(const char *path, size_t *ret_length)
{
	char *text = malloc(REQUEST_MAX_BYTES + 1);
	size_t length = 0;
	ssize_t got;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || !text)
		fail("open", path);
	while ((got = read(fd, text + length, REQUEST_MAX_BYTES - length)) > 0)
		length += (size_t)got;
	if (got < 0)
		fail("read", path);
	close(fd);
	text[length] = '\0';
	*ret_length = length;
	return text;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		fail("write", path);
	close(fd);
}

static void read_request(struct request *ret_request)
{
	static char *strings[REQUEST_MAX_STRINGS + 1];
	size_t length, count = 0;
	char *text = read_file("/request", &length);
	long arguments;

	for (char *at = text; at < text + length && count < REQUEST_MAX_STRINGS;) {
		strings[count++] = at;
		at += strlen(at) + 1;
	}
	errno = EBADMSG;
	if (count < 5)
		fail("parse", "/request");
	ret_request->token = strings[0];
	ret_request->timeout_s = strtol(strings[1], NULL, 10);
	ret_request->directory = strings[2];
	arguments = strtol(strings[3], NULL, 10);
	if (ret_request->timeout_s <= 0 || arguments < 1 || (size_t)arguments > count - 4)
		fail("parse", "/request");
	/* execve wants a NULL after the arguments: move them over the count before them. */
	memmove(strings + 3, strings + 4, (size_t)arguments * sizeof(*strings));
	strings[3 + arguments] = NULL;
	ret_request->arguments = strings + 3;
	ret_request->environment = strings + 4 + arguments;
}

static void load_modules(void)
{
	size_t length;
	char *list = read_file("/modules/order", &length), *rest = list, *path;

	while ((path = strsep(&rest, "\n"))) {
		int fd;

		if (!*path)
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			fail("open", path);
		if (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)
			fail("load", path);
		close(fd);
	}
	free(list);
}

static void build_root(void)
{
	mount_on("virtiofs", "host", "/lower", MS_RDONLY, NULL);
	mount_on("tmpfs", "upper", "/upper", 0, "mode=0755,size=50%");
	make_directory("/upper/files");
	make_directory("/upper/work");
	mount_on("overlay", "overlay", "/new", 0,
		 "lowerdir=/lower,upperdir=/upper/files,workdir=/upper/work");
	mount_on("tmpfs", "run", "/new/run", MS_NOSUID | MS_NODEV, "mode=0755");
	/* Moving keeps what the kernel already shows here, devices included. */
	for (const char *const *name = (const char *const[]){"proc", "sys", "dev", NULL}; *name;
	     name++) {
		char from[16], to[16];

		snprintf(from, sizeof(from), "/%s", *name);
		snprintf(to, sizeof(to), "/new/%s", *name);
		make_directory(to);
		if (mount(from, to, NULL, MS_MOVE, NULL) < 0)
			fail("move", from);
	}
	if (chdir("/new") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 ||
	    chdir("/") < 0)
		fail("enter", "/new");
	mount_on("devpts", "devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "mode=0620,ptmxmode=0666");
	mount_on("tmpfs", "shm", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777");
	symlink("/proc/self/fd", "/dev/fd");
	symlink("/proc/self/fd/0", "/dev/stdin");
	symlink("/proc/self/fd/1", "/dev/stdout");
	symlink("/proc/self/fd/2", "/dev/stderr");
	/* A directory kept from the host may not be writable for all in the guest. */
	chmod("/tmp", 01777);
}

/* No v1 hierarchy exists here, so every controller of the kernel is free for v2. */
static void mount_cgroup2(void)
{
	static const char wanted[] = "cpu memory pids";
	size_t length;
	char *controllers, *rest, *name, word[64];
	unsigned int found = 0;

	mount_on("cgroup2", "cgroup2", "/sys/fs/cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	controllers = read_file("/sys/fs/cgroup/cgroup.controllers", &length);
	rest = controllers;
	while ((name = strsep(&rest, " \n"))) {
		if (!*name)
			continue;
		snprintf(word, sizeof(word), "+%s", name);
		write_file("/sys/fs/cgroup/cgroup.subtree_control", word);
		if (!strcmp(name, "cpu") || !strcmp(name, "memory") || !strcmp(name, "pids"))
			found++;
	}
	free(controllers);
	errno = ENOENT;
	if (found != 3)
		fail("find controllers", wanted);
}

static void loopback_up(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		fail("set up", "lo");
	close(fd);
}

/* Opens the virtio port of that name, or returns -1 when it is not there (yet). */
static int find_port(const char *wanted)
{
	DIR *ports = opendir("/sys/class/virtio-ports");
	struct dirent *entry;
	int port = -1;

	if (!ports)
		return -1;
	while (port < 0 && (entry = readdir(ports))) {
		char path[512], name[64] = "";
		int fd;

		snprintf(path, sizeof(path), "/sys/class/virtio-ports/%s/name", entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (read(fd, name, sizeof(name) - 1) > 0)
			name[strcspn(name, "\n")] = '\0';
		close(fd);
		if (strcmp(name, wanted))
			continue;
		snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
		port = open(path, O_WRONLY | O_CLOEXEC);
	}
	closedir(ports);
	return port;
}

static int open_port(const char *name)
{
	const struct timespec moment = {.tv_nsec = 10 * 1000 * 1000};

	for (unsigned int waited_ms = 0; waited_ms < PORT_WAIT_MS; waited_ms += 10) {
		int port = find_port(name);

		if (port >= 0)
			return port;
		nanosleep(&moment, NULL);
	}
	errno = ETIMEDOUT;
	fail("wait for the port", name);
}

static _Noreturn void become_command(const struct request *request, const sigset_t *signals,
				     int output)
{
	int nothing = open("/dev/null", O_RDONLY);

	sigprocmask(SIG_UNBLOCK, signals, NULL);
	setsid();
	if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
		_exit(STATUS_CANNOT_RUN);
	if (nothing > 2)
		close(nothing);
	if (chdir(request->directory) < 0) {
		dprintf(2, "guest init: enter %s: %s\n", request->directory, strerror(errno));
		_exit(STATUS_CANNOT_RUN);
	}
	environ = request->environment;
	execvp(request->arguments[0], request->arguments);
	dprintf(2, "guest init: run %s: %s\n", request->arguments[0], strerror(errno));
	_exit(STATUS_CANNOT_RUN);
}

/* Reaps everything until the command has ended or the time is over; returns the status. */
static int supervise(pid_t command, long timeout_s, const sigset_t *signals)
{
	struct timespec now, deadline;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += timeout_s;
	for (;;) {
		const struct timespec second = {.tv_sec = 1};
		int status;
		pid_t pid;

		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			if (pid == command)
				return WIFEXITED(status) ? WEXITSTATUS(status)
							 : 128 + WTERMSIG(status);
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec >= deadline.tv_sec)
			return STATUS_TIMEOUT;
		sigtimedwait(signals, NULL, &second);
	}
}

int main(void)
{
	struct request request;
	int output, status_port, status;
	sigset_t signals;
	pid_t command;

	umask(022);
	mount_on("proc", "proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	mount_on("sysfs", "sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	mount_on("devtmpfs", "devtmpfs", "/dev", MS_NOSUID, "mode=0755");
	read_request(&request);
	load_modules();
	build_root();
	mount_cgroup2();
	loopback_up();
	if (sethostname("execpy-guest", strlen("execpy-guest")) < 0)
		fail("name", "the machine");
	output = open_port("output");
	status_port = open_port("status");

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	command = fork();
	if (command < 0)
		fail("fork", request.arguments[0]);
	if (command == 0)
		become_command(&request, &signals, output);
	status = supervise(command, request.timeout_s, &signals);
	if (status == STATUS_TIMEOUT)
		dprintf(STDERR_FILENO, "guest init: the command ended with 124 or after %ld s\n",
			request.timeout_s);
	if (dprintf(status_port, "%s %d\n", request.token, status) < 0)
		fail("write", "the status");
	power_off();
}
