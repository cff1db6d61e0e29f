/* SPDX-License-Identifier: Apache-2.0 */
/* watch: a seccomp notification on what must never happen.
 *
 * Theory of operation. A third filter of the cell turns a few calls into
 * notifications: bind, listen, connect, a datagram with an address, exec, and
 * opening for writing. The caller sleeps until the warden has looked. What is
 * reported would fail in the kernel all the same (no interface, Landlock,
 * read-only mounts); the watch is there to end a run at once and to say why.
 *
 * Arguments live in the caller's memory and may change while they are read, so
 * the answer "go on" is given only as a way back to those other layers, and
 * the worst that a race can do is to hide an attempt that fails anyway.
 *
 * Should: copy at most WATCH_DETAIL_MAX bytes and check that the notice is
 * still valid afterwards (the thread may have died and its id be another's).
 * Mustn't: open anything that a path names. */
#include "jail/watch.h"

#include "base/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
/* The low half of an argument; little endian, as both architectures are. */
#define LOAD_ARGUMENT(index) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * (index))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, action)
#define NOTIFY_IF_CALL(number) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), RETURN(SECCOMP_RET_USER_NOTIF)
#define WRITING (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)
/* If the call is `number`: notify when its argument has one of the bits. */
#define NOTIFY_IF_FLAGS(number, index, bits)                                                      \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4), LOAD_ARGUMENT(index),                  \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1), RETURN(SECCOMP_RET_USER_NOTIF), \
		RETURN(SECCOMP_RET_ALLOW)

static const struct sock_filter watching[] = {
	LOAD(arch),
	/* Calls for another architecture are the first filter's to kill. */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
	RETURN(SECCOMP_RET_ALLOW),
	LOAD(nr),
#ifdef SYS_open
	NOTIFY_IF_FLAGS(SYS_open, 1, WRITING),
	NOTIFY_IF_CALL(SYS_creat),
#endif
	NOTIFY_IF_FLAGS(SYS_openat, 2, WRITING),
	NOTIFY_IF_CALL(SYS_openat2),
	NOTIFY_IF_CALL(SYS_bind),
	NOTIFY_IF_CALL(SYS_listen),
	NOTIFY_IF_CALL(SYS_connect),
	NOTIFY_IF_FLAGS(SYS_sendto, 4, 0xffffffff),
	NOTIFY_IF_CALL(SYS_execve),
	NOTIFY_IF_CALL(SYS_execveat),
	RETURN(SECCOMP_RET_ALLOW),
};

int watch_install(struct error *err)
{
	const struct sock_fprog program = {
		.len = ARRAY_LENGTH(watching),
		.filter = (struct sock_filter *)watching,
	};
	long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);

	if (listener < 0)
		return fail(err, errno, "install the watch");
	return (int)listener;
}

const char *watch_event_name(enum watch_event event)
{
	static const char *const names[] = {
		[WATCH_BIND] = "socket.bind",       [WATCH_LISTEN] = "socket.listen",
		[WATCH_CONNECT] = "socket.connect", [WATCH_SEND] = "socket.sendto",
		[WATCH_EXEC] = "process.exec",      [WATCH_WRITE] = "file.write",
	};

	return names[event];
}

/* Copies from the caller's memory; short at the end of a mapping. */
static ssize_t peek(pid_t thread, uint64_t address, void *to, size_t length)
{
	struct iovec local = {to, length};
	struct iovec remote = {(void *)(uintptr_t)address, length};

	return process_vm_readv(thread, &local, 1, &remote, 1, 0);
}

/* A string, page by page: the next page may not be mapped. */
static bool peek_text(pid_t thread, uint64_t address, char text[PATH_MAX])
{
	size_t length = 0;

	while (length < PATH_MAX - 1) {
		size_t page = 4096 - (size_t)((address + length) & 4095);
		size_t wanted = page < PATH_MAX - 1 - length ? page : PATH_MAX - 1 - length;
		ssize_t got = peek(thread, address + length, text + length, wanted);

		if (got <= 0)
			return false;
		if (memchr(text + length, '\0', (size_t)got))
			return true;
		length += (size_t)got;
	}
	text[length] = '\0';
	return true;
}

static void printable(char *to, size_t size, const char *from)
{
	size_t used = 0;

	for (; *from && used + 5 < size; from++) {
		unsigned char c = (unsigned char)*from;

		if (c < ' ' || c >= 0x7f)
			used += (size_t)snprintf(to + used, size - used, "\\x%02x", c);
		else
			to[used++] = (char)c;
	}
	to[used] = '\0';
}

/* An absolute spelling of a path as the caller means it, "." and ".." folded
 * by text. Links in between are not followed: what they lead to is denied. */
static bool absolute(pid_t thread, int directory, const char *path, char out[PATH_MAX])
{
	char whole[2 * PATH_MAX], link[64];
	size_t used = 0;

	if (path[0] == '/') {
		snprintf(whole, sizeof whole, "%s", path);
	} else {
		ssize_t length;

		if (directory == AT_FDCWD)
			snprintf(link, sizeof link, "/proc/%d/cwd", (int)thread);
		else
			snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)thread, directory);
		/* readlink only: it is never opened. */
		length = readlink(link, whole, PATH_MAX - 1);
		if (length <= 0)
			return false;
		snprintf(whole + length, sizeof whole - (size_t)length, "/%s", path);
	}
	for (char *at = whole, *part; (part = strtok_r(at, "/", &at));) {
		if (strcmp(part, ".") == 0)
			continue;
		if (strcmp(part, "..") == 0) {
			while (used > 0 && out[--used] != '/')
				;
			continue;
		}
		if (used + strlen(part) + 2 > PATH_MAX)
			return false;
		used += (size_t)snprintf(out + used, PATH_MAX - used, "/%s", part);
	}
	if (used == 0)
		out[used++] = '/';
	out[used] = '\0';
	return true;
}

static bool beneath(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	return strncmp(path, directory, length) == 0 &&
	       (path[length] == '/' || path[length] == '\0');
}

/* Where writing is allowed, or opening for writing is everyday and harmless. */
static bool may_write(const char *path)
{
	static const char *const places[] = {
		"/workspace", "/tmp", "/dev/shm", "/var/tmp", "/dev/fd/1", "/dev/fd/2",
		"/proc/self/fd/1", "/proc/self/fd/2",
		/* libuuid keeps its clock there; it does without. */
		"/var/lib/libuuid", "/var/cache/matplotlib", "/dev/null", "/dev/zero", "/dev/full",
		"/dev/random", "/dev/urandom", "/dev/stdout", "/dev/stderr", "/dev/tty"};

	for (size_t i = 0; i < ARRAY_LENGTH(places); i++)
		if (beneath(path, places[i]))
			return true;
	/* A process may name itself and its threads. */
	return beneath(path, "/proc") && strlen(path) > 5 &&
	       strcmp(path + strlen(path) - 5, "/comm") == 0;
}

static void look_at_path(struct watch_notice *notice, int directory, uint64_t address)
{
	char path[PATH_MAX], whole[PATH_MAX];

	if (!peek_text(notice->thread, address, path)) {
		/* The kernel will say EFAULT. */
		notice->harmless = true;
		return;
	}
	if (!absolute(notice->thread, directory, path, whole))
		snprintf(whole, sizeof whole, "%s", path);
	notice->harmless = notice->event == WATCH_WRITE && may_write(whole);
	printable(notice->detail, sizeof notice->detail, whole);
}

static void look_at_address(struct watch_notice *notice, uint64_t address, uint64_t length)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} peer = {0};
	char text[INET6_ADDRSTRLEN] = "?";

	if (length > sizeof peer)
		length = sizeof peer;
	if (address == 0 || length < sizeof peer.any.sa_family ||
	    peek(notice->thread, address, &peer, length) <= 0) {
		notice->harmless = true;
		return;
	}
	switch (peer.any.sa_family) {
	case AF_INET:
		inet_ntop(AF_INET, &peer.v4.sin_addr, text, sizeof text);
		snprintf(notice->detail, sizeof notice->detail, "%s:%u", text,
			 ntohs(peer.v4.sin_port));
		/* Nobody is there, but it is not outward; and libraries try whether there
		 * is an address by taking any port of it. */
		notice->harmless = ntohl(peer.v4.sin_addr.s_addr) >> 24 == 127 &&
				   (notice->event != WATCH_BIND || peer.v4.sin_port == 0);
		break;
	case AF_INET6:
		inet_ntop(AF_INET6, &peer.v6.sin6_addr, text, sizeof text);
		snprintf(notice->detail, sizeof notice->detail, "[%s]:%u", text,
			 ntohs(peer.v6.sin6_port));
		notice->harmless = IN6_IS_ADDR_LOOPBACK(&peer.v6.sin6_addr) &&
				   (notice->event != WATCH_BIND || peer.v6.sin6_port == 0);
		break;
	default:
		/* Unix sockets live in the workspace; others do not exist. */
		notice->harmless = true;
	}
}

/* A listening socket's family is not in the call; what can be known without touching the
 * caller's descriptors is what the kernel tells of this one. Only of Unix sockets it tells
 * how many descriptors wait in them (since Linux 5.6). The table of all of them takes long
 * to read where there are many. */
static void look_at_listener(struct watch_notice *notice, int fd)
{
	char path[64], text[1024];
	autofd info = -1;
	ssize_t length;

	snprintf(notice->detail, sizeof notice->detail, "descriptor %d", fd);
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)notice->thread, fd);
	length = readlink(path, text, sizeof text - 1);
	if (length < 8 || memcmp(text, "socket:[", 8) != 0) {
		notice->harmless = true; /* the call will fail */
		return;
	}
	snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", (int)notice->thread, fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	length = info < 0 ? -1 : read(info, text, sizeof text - 1);
	text[length < 0 ? 0 : length] = '\0';
	notice->harmless = strstr(text, "\nscm_fds:") != NULL;
}

static void look(struct watch_notice *notice, const struct seccomp_data *data)
{
	const __u64 *arguments = data->args;

	switch (data->nr) {
	case SYS_bind:
	case SYS_connect:
		notice->event = data->nr == SYS_bind ? WATCH_BIND : WATCH_CONNECT;
		look_at_address(notice, arguments[1], arguments[2]);
		return;
	case SYS_sendto:
		notice->event = WATCH_SEND;
		look_at_address(notice, arguments[4], arguments[5]);
		return;
	case SYS_listen:
		notice->event = WATCH_LISTEN;
		look_at_listener(notice, (int)arguments[0]);
		return;
	case SYS_execve:
		notice->event = WATCH_EXEC;
		look_at_path(notice, AT_FDCWD, arguments[0]);
		return;
	case SYS_execveat:
		notice->event = WATCH_EXEC;
		look_at_path(notice, (int)arguments[0], arguments[1]);
		return;
#ifdef SYS_open
	case SYS_open:
	case SYS_creat:
		notice->event = WATCH_WRITE;
		look_at_path(notice, AT_FDCWD, arguments[0]);
		return;
#endif
	case SYS_openat2: {
		uint64_t flags = 0;

		if (peek(notice->thread, arguments[2], &flags, sizeof flags) != sizeof flags ||
		    !(flags & WRITING)) {
			notice->harmless = true;
			return;
		}
		break;
	}
	default:
		break;
	}
	notice->event = WATCH_WRITE;
	look_at_path(notice, (int)arguments[0], arguments[1]);
}

bool watch_pending(int listener)
{
	struct pollfd polled = {.fd = listener, .events = POLLIN};

	return poll(&polled, 1, 0) == 1 && (polled.revents & POLLIN);
}

bool watch_hung_up(int listener)
{
	struct pollfd polled = {.fd = listener, .events = POLLIN};

	return poll(&polled, 1, 0) == 1 && (polled.revents & (POLLHUP | POLLERR | POLLNVAL));
}

int watch_receive(int listener, struct watch_notice *ret_notice)
{
	struct seccomp_notif request = {0};
	struct watch_notice notice = {0};

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
		return errno == ENOENT || errno == EINTR || errno == EAGAIN ? 0 : -errno;
	notice.id = request.id;
	notice.thread = (pid_t)request.pid;
	look(&notice, &request.data);
	/* Its thread may be gone and the number another's: then forget it. */
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &notice.id) < 0)
		return 0;
	*ret_notice = notice;
	return 1;
}

int watch_answer(int listener, const struct watch_notice *notice, bool go_on)
{
	struct seccomp_notif_resp answer = {
		.id = notice->id,
		.error = go_on ? 0 : -EACCES,
		.flags = go_on ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0,
	};

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}
