/* SPDX-License-Identifier: Apache-2.0 */
/* landlock: see landlock.h. */
#include "jail/landlock.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The kernel's interface in our own words: the headers that we build with may
 * be years older than the kernel that we run on. */
#define RIGHT_EXECUTE    (UINT64_C(1) << 0)
#define RIGHT_WRITE_FILE (UINT64_C(1) << 1)
#define RIGHT_READ_FILE  (UINT64_C(1) << 2)
#define RIGHT_READ_DIR   (UINT64_C(1) << 3)
#define RIGHT_MAKE_CHAR  (UINT64_C(1) << 6)
#define RIGHT_MAKE_SOCK  (UINT64_C(1) << 9)
#define RIGHT_MAKE_FIFO  (UINT64_C(1) << 10)
#define RIGHT_MAKE_BLOCK (UINT64_C(1) << 11)
#define RIGHT_MAKE_SYM   (UINT64_C(1) << 12)
#define RIGHT_REFER      (UINT64_C(1) << 13)
#define RIGHT_TRUNCATE   (UINT64_C(1) << 14)
#define RIGHT_IOCTL_DEV  (UINT64_C(1) << 15)
#define RIGHTS_OF_ABI_1  ((RIGHT_MAKE_SYM << 1) - 1)
#define RIGHTS_OF_A_FILE \
	(RIGHT_EXECUTE | RIGHT_WRITE_FILE | RIGHT_READ_FILE | RIGHT_TRUNCATE | RIGHT_IOCTL_DEV)

#define RIGHTS_TO_ODD_FILES                                                                       \
	(RIGHT_EXECUTE | RIGHT_MAKE_CHAR | RIGHT_MAKE_SOCK | RIGHT_MAKE_FIFO | RIGHT_MAKE_BLOCK | \
	 RIGHT_MAKE_SYM | RIGHT_IOCTL_DEV)

#define NET_BIND_TCP    (UINT64_C(1) << 0)
#define NET_CONNECT_TCP (UINT64_C(1) << 1)

#define SCOPE_ABSTRACT_UNIX_SOCKET (UINT64_C(1) << 0)
#define SCOPE_SIGNAL               (UINT64_C(1) << 1)

#define CREATE_RULESET_VERSION           1u
#define RULE_PATH_BENEATH                1
#define RESTRICT_SELF_LOG_SAME_EXEC_OFF  1u
#define RESTRICT_SELF_LOG_SUBDOMAINS_OFF 4u

struct ruleset_attribute {
	uint64_t handled_files;
	uint64_t handled_net; /* ABI 4 */
	uint64_t scoped;      /* ABI 6 */
};

struct path_beneath_attribute {
	uint64_t allowed;
	int32_t parent_fd;
} __attribute__((packed));

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);

	return abi > 0 ? (int)abi : 0;
}

static uint64_t known_file_rights(int abi)
{
	uint64_t rights = RIGHTS_OF_ABI_1;

	if (abi >= 2)
		rights |= RIGHT_REFER;
	if (abi >= 3)
		rights |= RIGHT_TRUNCATE;
	if (abi >= 5)
		rights |= RIGHT_IOCTL_DEV;
	return rights;
}

static uint64_t granted_rights(enum landlock_access access)
{
	switch (access) {
	case LANDLOCK_READ:
		return RIGHT_EXECUTE | RIGHT_READ_FILE | RIGHT_READ_DIR;
	case LANDLOCK_WRITE:
		/* No device is ever made by a cell, and none is there to control. */
		return (RIGHTS_OF_ABI_1 & ~(RIGHT_MAKE_CHAR | RIGHT_MAKE_BLOCK)) | RIGHT_REFER |
		       RIGHT_TRUNCATE;
	case LANDLOCK_DEVICE:
		/* With ioctl, so that isatty("/dev/null") says ENOTTY as it does
		 * everywhere; opening for writing often truncates. */
		return RIGHT_READ_FILE | RIGHT_WRITE_FILE | RIGHT_TRUNCATE | RIGHT_IOCTL_DEV;
	}
	return 0;
}

static int add_path(int ruleset, const struct landlock_path *path, uint64_t known,
		    struct error *err)
{
	autofd fd = open(path->path, O_PATH | O_CLOEXEC);
	struct path_beneath_attribute rule = {
		.allowed = granted_rights(path->access) & known,
		.parent_fd = fd,
	};
	struct stat status;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR) && path->optional)
		return 0;
	if (fd < 0)
		return fail(err, errno, "landlock: open \"%s\"", path->path);
	if (fstat(fd, &status) < 0)
		return fail(err, errno, "landlock: look at \"%s\"", path->path);
	if (path->access == LANDLOCK_DEVICE && !S_ISCHR(status.st_mode) && !S_ISDIR(status.st_mode))
		return refuse(err, EINVAL,
			      "landlock: \"%s\" is neither a character device nor a directory",
			      path->path);
	/* The kernel refuses a directory's rights on anything else. */
	if (!S_ISDIR(status.st_mode))
		rule.allowed &= RIGHTS_OF_A_FILE;
	if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0) < 0)
		return fail(err, errno, "landlock: add a rule for \"%s\"", path->path);
	return 0;
}

/* No call asks whether a domain is in force, so what it must refuse is tried.
 * A read-only mount may be the first to refuse a file; a port of TCP is refused
 * by Landlock alone. */
static int check_confinement(const struct landlock_plan *plan, int abi, struct error *err)
{
	if (plan->must_refuse) {
		autofd fd = open(plan->must_refuse, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

		if (fd >= 0)
			return refuse(err, EPROTO, "landlock: \"%s\" can be written after all",
				      plan->must_refuse);
		if (errno != EACCES && errno != EROFS)
			return fail(err, errno, "landlock: try to write in \"%s\"",
				    plan->must_refuse);
	}
	if (plan->deny_tcp && abi >= 4) {
		struct sockaddr_in any = {.sin_family = AF_INET};
		autofd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0)
			return fail(err, errno, "landlock: make a socket to try");
		if (bind(fd, (struct sockaddr *)&any, sizeof any) == 0)
			return refuse(err, EPROTO, "landlock: TCP ports can be bound after all");
		if (errno != EACCES)
			return fail(err, errno, "landlock: try to bind a TCP port");
	}
	return 0;
}

int landlock_confine(const struct landlock_plan *plan, struct error *err)
{
	struct ruleset_attribute attribute = {0};
	size_t size = offsetof(struct ruleset_attribute, handled_net);
	unsigned int flags = 0;
	autofd ruleset = -1;
	int abi = landlock_abi();
	int r;

	if (abi == 0)
		return refuse(err, ENOSYS,
			      "landlock: the kernel has none, or it is not switched on (lsm=)");
	/* 1. What is governed: a kernel refuses rights that it does not know, and
	 * an older one also a longer structure. */
	attribute.handled_files = known_file_rights(abi);
	if (plan->any_file)
		attribute.handled_files &= RIGHTS_TO_ODD_FILES;
	if (abi >= 4) {
		size = offsetof(struct ruleset_attribute, scoped);
		if (plan->deny_tcp)
			attribute.handled_net = NET_BIND_TCP | NET_CONNECT_TCP;
	}
	if (abi >= 6) {
		size = sizeof attribute;
		if (plan->deny_abstract_sockets)
			attribute.scoped |= SCOPE_ABSTRACT_UNIX_SOCKET;
		if (plan->deny_signals)
			attribute.scoped |= SCOPE_SIGNAL;
	}
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attribute, size, 0);
	if (ruleset < 0)
		return fail(err, errno, "landlock: make a ruleset");
	/* 2. What is allowed of it. */
	for (size_t i = 0; i < plan->path_count; i++) {
		r = add_path(ruleset, &plan->paths[i], attribute.handled_files, err);
		if (r < 0)
			return r;
	}
	/* 3. From here on. User code could fill the host's audit log with denials. */
	if (abi >= 7)
		flags = RESTRICT_SELF_LOG_SAME_EXEC_OFF | RESTRICT_SELF_LOG_SUBDOMAINS_OFF;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail(err, errno, "set no_new_privs");
	if (syscall(SYS_landlock_restrict_self, ruleset, flags) < 0)
		return fail(err, errno, "landlock: restrict the process");
	return check_confinement(plan, abi, err);
}
