/* SPDX-License-Identifier: Apache-2.0 */
/* credentials: see credentials.h. */
#include "jail/credentials.h"

#include "base/bounds.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SECUREBITS_LOCKED                                                                        \
	(SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                         \
	 SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | \
	 SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

static int write_file(const char *path, const char *text, struct error *err)
{
	size_t length = strlen(text);
	autofd fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return fail(err, errno, "credentials: open %s", path);
	if (write(fd, text, length) != (ssize_t)length)
		return fail(err, errno, "credentials: write %s", path);
	return 0;
}

int credentials_map(uid_t outside_uid, gid_t outside_gid, struct error *err)
{
	char map[64];
	int r;

	r = write_file("/proc/self/setgroups", "deny", err);
	if (r < 0)
		return r;
	snprintf(map, sizeof map, "%d %u 1", SANDBOX_ID, (unsigned)outside_uid);
	r = write_file("/proc/self/uid_map", map, err);
	if (r < 0)
		return r;
	snprintf(map, sizeof map, "%d %u 1", SANDBOX_ID, (unsigned)outside_gid);
	r = write_file("/proc/self/gid_map", map, err);
	if (r < 0)
		return r;
	if (getuid() != SANDBOX_ID || getgid() != SANDBOX_ID)
		return refuse(err, EPROTO, "credentials: the id map did not take");
	return 0;
}

int credentials_bound(struct error *err)
{
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return fail(err, errno, "credentials: clear ambient capabilities");
	/* The kernel may know more capabilities than the headers do. */
	for (int cap = 0; cap < 64; cap++) {
		int left;

		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0)
			continue;
		left = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
		if (left < 0)
			break; /* it knows no more */
		if (left > 0)
			return fail(err, EPERM, "credentials: drop capability %d", cap);
	}
	/* Inherited from a parent that was bound already: nothing left to lock,
	 * and no capability to do it with. */
	if (prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) != SECUREBITS_LOCKED &&
	    prctl(PR_SET_SECUREBITS, SECUREBITS_LOCKED, 0, 0, 0) < 0)
		return fail(err, errno, "credentials: lock securebits");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail(err, errno, "credentials: no_new_privs");
	return 0;
}

int credentials_drop(int dumpable, struct error *err)
{
	struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {0}, now[2];
	int r;

#ifndef UNSAFE_WITHOUT_CAPABILITIES
	r = credentials_bound(err);
	if (r < 0)
		return r;
	if (syscall(SYS_capset, &header, none) < 0)
		return fail(err, errno, "credentials: capset");
	if (syscall(SYS_capget, &header, now) < 0 || memcmp(now, none, sizeof now) != 0)
		return refuse(err, EPROTO, "credentials: capabilities are left");
	if (prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0) != 0 ||
	    prctl(PR_GET_SECUREBITS, 0, 0, 0, 0) != SECUREBITS_LOCKED)
		return refuse(err, EPROTO, "credentials: the bounding set is not empty");
#else
	(void)header, (void)none, (void)now, (void)r;
#endif
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 &&
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail(err, errno, "credentials: no_new_privs");
	if (prctl(PR_SET_DUMPABLE, dumpable, 0, 0, 0) < 0 ||
	    prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != dumpable)
		return fail(err, errno, "credentials: dumpable");
	return 0;
}

int credentials_become(uid_t uid, gid_t gid, struct error *err)
{
	uid_t real, effective, saved;

	if (setgroups(0, NULL) < 0)
		return fail(err, errno, "credentials: leave all groups");
	if (setresgid(gid, gid, gid) < 0)
		return fail(err, errno, "credentials: become group %u", (unsigned)gid);
	if (setresuid(uid, uid, uid) < 0)
		return fail(err, errno, "credentials: become user %u", (unsigned)uid);
	if (getresuid(&real, &effective, &saved) < 0 || real != uid || effective != uid ||
	    saved != uid || setuid(0) == 0)
		return refuse(err, EPROTO, "credentials: root did not go away");
	return 0;
}

bool credentials_is_root(void)
{
	autofile *map = NULL;
	unsigned long inside, length, until = 0;

	if (geteuid() != 0)
		return false;
	map = fopen("/proc/self/uid_map", "re");
	while (map && fscanf(map, "%lu %*u %lu", &inside, &length) == 2)
		if (inside <= IDENTITY_BASE && inside + length > until)
			until = inside + length;
	return until > IDENTITY_BASE + (1ul << 22); /* the largest pid that there can be */
}
