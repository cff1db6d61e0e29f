/* SPDX-License-Identifier: Apache-2.0 */
/* landlock: the second fence around files, TCP, abstract sockets and signals.
 *
 * Never the only fence: at ABI 7 Landlock does not govern stat, chmod, chown,
 * xattr, chdir, flock or UDP; for those the mount and network namespaces stand
 * alone. What an older kernel's Landlock cannot do is left out silently, since
 * each of its denials has another layer before it; a kernel without any
 * Landlock is an error, and it is for the caller to decide what that means.
 *
 * | ABI | adds                                    | Linux |
 * |-----|-----------------------------------------|-------|
 * | 1   | files (renames across directories: no)  | 5.13  |
 * | 2   | renames across directories (REFER)      | 5.19  |
 * | 3   | truncate                                | 6.2   |
 * | 4   | TCP bind and connect                    | 6.7   |
 * | 5   | ioctl on devices                        | 6.10  |
 * | 6   | abstract sockets, signals               | 6.12  |
 * | 7   | audit of denials (switched off by us)   | 6.15  | */
#ifndef EXECPY_JAIL_LANDLOCK_H
#define EXECPY_JAIL_LANDLOCK_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum landlock_access {
	LANDLOCK_READ = 1, /* read and execute, beneath */
	LANDLOCK_WRITE,    /* that, and change, beneath; no device nodes are made */
	LANDLOCK_DEVICE,   /* read, write and ioctl, of this node or all beneath; none is made */
};

struct landlock_path {
	const char *path;
	enum landlock_access access;
	bool optional; /* not there: skipped, instead of an error */
};

struct landlock_plan {
	const struct landlock_path *paths;
	size_t path_count;
	/* Files are not governed but for what is neither file nor directory: nothing is
	 * executed, and no node, link or socket made. For who works in file systems that
	 * he cannot name, which no rule can allow; `paths` must be empty. */
	bool any_file;
	bool deny_tcp;              /* bind and connect, ABI 4 */
	bool deny_abstract_sockets; /* connecting to those made outside, ABI 6 */
	bool deny_signals;          /* to processes outside, ABI 6; those inside are reached */
	/* A directory in which nothing may be written according to `paths`, to
	 * try it; NULL: not tried. Its file system must know O_TMPFILE. */
	const char *must_refuse;
};

/* The ABI of the running kernel: 1 or more, 0 when there is no Landlock. */
int landlock_abi(void);

/* Confines the calling thread and all it will ever start, for good; sets
 * no_new_privs. A process confines itself while it has one thread, else its
 * other threads stay free. What was opened before stays open.
 *
 * A rule is for the mount that its path shows now: a file system mounted over
 * it later is not covered. Runs in the cell before its seccomp filter, or in
 * any process that wants the fence. Allocates nothing, usable after fork.
 *
 * Costs about 5 us a path, 20 us for the rest and 20 us for the checks, so one
 * rule for a directory of devices is better than one for each.
 *
 * Returns 0; -ENOSYS when the kernel has no Landlock; another negative errno
 * when a step failed: then the process may be half confined, and must end. */
int landlock_confine(const struct landlock_plan *plan, struct error *err);

#endif
