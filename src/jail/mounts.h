/* SPDX-License-Identifier: Apache-2.0 */
/* mounts: the file system that guests see. */
#ifndef EXECPY_JAIL_MOUNTS_H
#define EXECPY_JAIL_MOUNTS_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Builds a template's root from the table of mounts and makes it the root of
 * the calling process. Stage: the keeper, in its new user, mount and pid
 * namespaces, still with their capabilities. Afterwards nothing of the host's
 * tree is reachable but what the table names, read-only.
 *
 * `font_list` (may be -1) is copied to /var/cache/execpy under the given name:
 * matplotlib's list of fonts takes seconds to make. */
int mounts_build_root(int font_list, const char *font_list_name, struct error *err);

/* Puts a cell's writable places over the template's root: one tmpfs of
 * `disk_bytes` that appears as /workspace, /tmp and /dev/shm, and a /proc that
 * shows the cell's own processes only. Returns in *ret_workspace
 * a descriptor of /workspace, which keeps the tmpfs alive after the cell. Stage: init, in its own
 * namespaces. */
int mounts_build_cell(uint64_t disk_bytes, int *ret_workspace, struct error *err);

/* inodes allowed on the cell's tmpfs: one for each 4 KiB, within bounds */
uint64_t mounts_inode_limit(uint64_t disk_bytes);

#endif
