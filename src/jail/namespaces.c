/* SPDX-License-Identifier: Apache-2.0 */
/* namespaces: see namespaces.h. */
#include "jail/namespaces.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

pid_t namespaces_clone(uint64_t flags, int *ret_pidfd, struct error *err)
{
	int pidfd = -1;
	struct clone_args args = {
		.flags = flags | (ret_pidfd ? CLONE_PIDFD : 0),
		.pidfd = (uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
	};
	long pid = syscall(SYS_clone3, &args, sizeof args);

	if (pid < 0)
		return fail(err, errno, "namespaces: clone3");
	if (pid > 0 && ret_pidfd)
		*ret_pidfd = pidfd;
	return (pid_t)pid;
}

int descriptors_keep(int *keep, size_t count, struct error *err)
{
	/* First out of the way of 3 … 3+count, then into place. */
	for (size_t i = 0; i < count; i++) {
		int moved = fcntl(keep[i], F_DUPFD_CLOEXEC, (int)(3 + count));

		if (moved < 0)
			return fail(err, errno, "descriptors: move %d", keep[i]);
		keep[i] = moved;
	}
	for (size_t i = 0; i < count; i++) {
		int target = (int)(3 + i);

		if (dup3(keep[i], target, O_CLOEXEC) < 0)
			return fail(err, errno, "descriptors: place %d", target);
		keep[i] = target;
	}
#ifndef UNSAFE_WITHOUT_DESCRIPTORS
	if (close_range((unsigned)(3 + count), ~0U, 0) < 0)
		return fail(err, errno, "descriptors: close_range");
#endif
	return 0;
}
