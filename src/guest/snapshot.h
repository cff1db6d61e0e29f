/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot: a workspace as it was, kept in memory. */
#ifndef EXECPY_GUEST_SNAPSHOT_H
#define EXECPY_GUEST_SNAPSHOT_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct snapshot;

struct snapshot_bounds {
	uint64_t bytes; /* of all files together */
	size_t entries;
};

/* The contents of a directory: regular files, directories and links; what is
 * anything else is left out. When nothing changed since `before` (or NULL) that one
 * is shared. NULL, with the reason, beyond the bounds or when memory is out. The
 * memory is the calling process's. Stage: judge. */
struct snapshot *snapshot_take(int directory, const struct snapshot_bounds *bounds,
			       struct snapshot *before, const char **ret_refused);
/* Makes the directory what it was: files that changed are written anew, what was
 * not there is removed. Nobody else may change it meanwhile. */
int snapshot_restore(int directory, const struct snapshot *snapshot, struct error *err);
uint64_t snapshot_bytes(const struct snapshot *snapshot); /* of files; 0 for NULL */
/* Another reference; both are NULL-safe. */
struct snapshot *snapshot_share(struct snapshot *snapshot);
void snapshot_release(struct snapshot *snapshot);

#endif
