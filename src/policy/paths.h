/* SPDX-License-Identifier: Apache-2.0 */
/* paths: where a path lies, judged by its text alone. */
#ifndef EXECPY_POLICY_PATHS_H
#define EXECPY_POLICY_PATHS_H

#include "base/bytes.h"

#include <stdbool.h>

#define PATH_TEXT_MAX 4096

enum path_place {
	PATH_INSIDE,  /* /workspace, /tmp, /dev/shm, /dev/null and the like */
	PATH_UNKNOWN, /* only a beginning is known and it decides nothing */
	PATH_OUTSIDE, /* somewhere else; reading finds nothing there */
	PATH_SHARED,  /* outside, but made to be read: /usr/share, zoneinfo */
	PATH_SYSTEM,  /* /etc, /proc, /sys, /usr, ... */
	PATH_SECRET,  /* keys, passwords, memory */
};

/* Writes the absolute, normal form of `path` as seen from /workspace, without
 * resolving links; false when it does not fit. A leading "file:" is taken off.
 * `prefix` keeps the end as it is. */
bool path_normalize(struct span path, bool prefix, char ret_path[PATH_TEXT_MAX]);

enum path_place path_place(struct span path, bool prefix);

#endif
