/* SPDX-License-Identifier: Apache-2.0 */
/* resources: see resources.h. */
#include "jail/resources.h"

#include "base/bounds.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

int resources_reset(struct error *err)
{
	struct sigaction standard = {.sa_handler = SIG_DFL};
	struct itimerval off = {0};
	cpu_set_t processors;
	sigset_t none;

	for (int number = 1; number < NSIG; number++) {
		if (number == SIGKILL || number == SIGSTOP)
			continue;
		/* 32 and 33 are glibc's own and refused by its wrapper. */
		if (sigaction(number, &standard, NULL) < 0 && errno != EINVAL)
			return fail(err, errno, "resources: reset signal %d", number);
	}
	sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return fail(err, errno, "resources: unblock signals");
	if (setitimer(ITIMER_REAL, &off, NULL) < 0 || setitimer(ITIMER_VIRTUAL, &off, NULL) < 0 ||
	    setitimer(ITIMER_PROF, &off, NULL) < 0)
		return fail(err, errno, "resources: stop timers");
	umask(022);
	personality(PER_LINUX);
	/* Lowering nice needs a privilege; a niced caller stays niced. */
	(void)setpriority(PRIO_PROCESS, 0, 0);
	/* The cpuset decides; asking for all of them drops an inherited mask. */
	memset(&processors, 0xff, sizeof processors);
	(void)sched_setaffinity(0, sizeof processors, &processors);
	/* A new session keyring, so that the caller's cannot be reached. ENOSYS:
	 * no keyrings at all. EDQUOT: this id has too many; the seccomp filter
	 * refuses every key call in a guest anyway. */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS &&
	    errno != EDQUOT && errno != EPERM)
		return fail(err, errno, "resources: leave the session keyring");
	return 0;
}

struct resource_limit {
	__rlimit_resource_t resource;
	const char *name;
	uint64_t value;
};

static int set_limits(const struct resource_limit *limits, size_t count, struct error *err)
{
#ifdef UNSAFE_WITHOUT_RLIMITS
	return 0;
#endif
	for (size_t i = 0; i < count; i++) {
		struct rlimit now, wanted = {limits[i].value, limits[i].value};

		if (getrlimit(limits[i].resource, &now) < 0)
			return fail(err, errno, "resources: read limit %s", limits[i].name);
		/* A caller's own lower limit stands. */
		if (now.rlim_max != RLIM_INFINITY && now.rlim_max < wanted.rlim_max)
			wanted.rlim_cur = wanted.rlim_max = now.rlim_max;
		if (setrlimit(limits[i].resource, &wanted) < 0)
			return fail(err, errno, "resources: limit %s", limits[i].name);
		if (getrlimit(limits[i].resource, &now) < 0 || now.rlim_max != wanted.rlim_max)
			return refuse(err, EPROTO, "resources: limit %s did not take",
				      limits[i].name);
	}
	return 0;
}

int resources_limit_always(struct error *err)
{
	static const struct resource_limit limits[] = {
		{RLIMIT_CORE, "core", 0},
		{RLIMIT_NOFILE, "nofile", 1024},
		{RLIMIT_MSGQUEUE, "msgqueue", 0},
		{RLIMIT_MEMLOCK, "memlock", 64 * KIB},
		{RLIMIT_SIGPENDING, "sigpending", 1024},
		{RLIMIT_RTPRIO, "rtprio", 0},
		{RLIMIT_NICE, "nice", 0},
		{RLIMIT_STACK, "stack", 8 * MIB},
	};

	return set_limits(limits, ARRAY_LENGTH(limits), err);
}

int resources_limit(const struct resources *resources, struct error *err)
{
	struct resource_limit limits[4] = {
		{RLIMIT_NPROC, "nproc", resources->processes},
		{RLIMIT_FSIZE, "fsize", resources->file_bytes},
	};
	size_t count = 2;

	if (resources->data_bytes > 0)
		limits[count++] =
			(struct resource_limit){RLIMIT_DATA, "data", resources->data_bytes};
	if (resources->cpu_seconds > 0)
		limits[count++] =
			(struct resource_limit){RLIMIT_CPU, "cpu", resources->cpu_seconds};
	return set_limits(limits, count, err);
}

int resources_oom_score(int score, struct error *err)
{
	char text[16];
	int length = snprintf(text, sizeof text, "%d", score);
	autofd fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, (size_t)length) != length)
		return fail(err, errno, "resources: oom_score_adj");
	return 0;
}
