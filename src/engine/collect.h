/* SPDX-License-Identifier: Apache-2.0 */
/* collect: walks what a run left in its workspace. */
#ifndef EXECPY_ENGINE_COLLECT_H
#define EXECPY_ENGINE_COLLECT_H

#include "base/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Root acts in a workspace with the rights of whom it belongs to, and nobody
 * else's: in between, files are made, opened and refused as for the cell. Of
 * the calling thread only. For other users nothing changes. */
struct workspace_identity {
	uid_t uid; /* to return to */
	gid_t gid;
	bool changed;
};

struct workspace_identity workspace_enter(int workspace);
void workspace_leave(const struct workspace_identity *identity);

/* Opens what is beneath a directory of a workspace for reading, never through a link
 * or another mount: a descriptor, or -1 and errno. */
int workspace_open(int directory, const char *path, uint64_t flags);

/* Until when something may go on, of now_us(). Another thread may end it earlier: then it
 * stays over (-1). */
struct deadline {
	_Atomic int64_t until_us;
};

static inline void deadline_set(struct deadline *deadline, int64_t ms)
{
	int64_t before = atomic_load(&deadline->until_us);

	if (before >= 0) /* else, or if it changes just now, it was stopped */
		atomic_compare_exchange_strong(&deadline->until_us, &before, now_us() + ms * 1000);
}

static inline void deadline_stop(struct deadline *deadline)
{
	atomic_store(&deadline->until_us, -1);
}

/* NULL: never. */
static inline bool deadline_is_over(const struct deadline *deadline)
{
	return deadline && now_us() > atomic_load(&deadline->until_us);
}

struct collector {
	int workspace;                   /* a directory; stays the caller's */
	uint64_t disk_bytes;             /* a file that claims to be larger is refused */
	const struct deadline *deadline; /* no entry is looked at later */
	/* Once an entry: its path beneath the workspace, raw bytes. Either fd >= 0, a
	 * regular file of this size, open for reading, closed afterwards; or the
	 * reason why it is not handed out. */
	void (*add)(void *user, const char *path, uint64_t size, int fd, const char *reason);
	void *user;
};

/* Returns why the walk was ended early, or NULL. */
const char *collect_workspace(const struct collector *collector);

#endif
