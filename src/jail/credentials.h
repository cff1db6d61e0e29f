/* SPDX-License-Identifier: Apache-2.0 */
/* credentials: who a process of ours is, and that it can become nobody else. */
#ifndef EXECPY_JAIL_CREDENTIALS_H
#define EXECPY_JAIL_CREDENTIALS_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

/* The one id that exists inside. Non-zero, so that nothing in a guest mistakes
 * itself for root, and because a process without capabilities may not map
 * its parent's id 0. */
#define SANDBOX_ID 1000

/* Maps SANDBOX_ID to `outside_uid` and `outside_gid` for the calling process,
 * which has just entered a new user namespace; setgroups is denied first.
 * Needs a writable /proc of the parent namespace. */
int credentials_map(uid_t outside_uid, gid_t outside_gid, struct error *err);

/* Empties the bounding set and locks securebits; keeps the capabilities that
 * are in force. Stage: before exec as a non-root id, which drops the rest. */
int credentials_bound(struct error *err);

/* No capability in any set, securebits locked, no new privileges, not
 * dumpable; each checked after it is done. Async-signal-safe.
 * `dumpable`: whether the process's own kind may read it (a cell's own
 * /proc/self must work, init's must not). */
int credentials_drop(int dumpable, struct error *err);

/* Whether this is root that can become somebody else: not the root of a user namespace
 * with one id, which is an ordinary user under another number. */
bool credentials_is_root(void);

/* Root's one-way step to an unprivileged id: groups, gid, uid, verified. */
int credentials_become(uid_t uid, gid_t gid, struct error *err);

#endif
