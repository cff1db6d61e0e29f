/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share: makes everything that it can see read-only for itself, then becomes virtiofsd.
 *
 * Usage: share SOCKET VIRTIOFSD ARGUMENT…
 *
 * virtiofsd serves the host's root to the guest, and the version in Debian 12 has no read-only
 * mode. So the kernel is asked for it: in an own mount namespace every mount, present below "/",
 * is set read-only in one call, and virtiofsd starts inside. The listening socket is made before
 * that, and handed over as a descriptor. It needs root: an overlay opens
 * what lies below it with O_NOATIME, which only an owner of the files or root may.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static _Noreturn void fail(const char *step)
{
	fprintf(stderr, "share: %s: %s\n", step, strerror(errno));
	exit(1);
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), length;

	if (fd < 0)
		fail("socket");
	length = snprintf(address.sun_path, sizeof(address.sun_path), "%s.new", path);
	if (length < 0 || (size_t)length >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		fail(path);
	}
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		fail(path);
	if (listen(fd, 1) < 0)
		fail("listen");
	/* Who sees the name may connect. */
	if (rename(address.sun_path, path) < 0)
		fail(path);
	return fd;
}

/* virtiofsd keeps a descriptor for every file that the guest knows. */
static void raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		fail("getrlimit");
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		fail("setrlimit");
}

int main(int argc, char **argv)
{
	struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY, .propagation = 1 << 18};
	char descriptor[32], **arguments;
	int fd;

	if (argc < 3) {
		fprintf(stderr, "usage: share SOCKET VIRTIOFSD [ARGUMENT...]\n");
		return 2;
	}
	/* Not to outlive the script that started it. */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
		fail("death signal");
	fd = listen_at(argv[1]);
	raise_descriptors();
	if (unshare(CLONE_NEWNS) < 0)
		fail("mount namespace");
	/* 1 << 18 is MS_PRIVATE: <sys/mount.h> and <linux/mount.h> do not mix in older libcs. */
	if (syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &read_only, sizeof(read_only)) <
	    0)
		fail("make / read-only");
	snprintf(descriptor, sizeof(descriptor), "--fd=%d", fd);
	arguments = calloc((size_t)argc, sizeof(*arguments));
	if (!arguments)
		fail("memory");
	arguments[0] = argv[2];
	arguments[1] = descriptor;
	for (int i = 3; i < argc; i++)
		arguments[i - 1] = argv[i];
	execv(argv[2], arguments);
	fail(argv[2]);
}
