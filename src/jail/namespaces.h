/* SPDX-License-Identifier: Apache-2.0 */
/* namespaces: clone3 and descriptors, as all processes of the jail use them. */
#ifndef EXECPY_JAIL_NAMESPACES_H
#define EXECPY_JAIL_NAMESPACES_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* fork() with namespace flags: like clone3 without CLONE_VM. Returns the pid,
 * 0 in the child, or a negative errno. ret_pidfd may be NULL. The caller must
 * be single-threaded: glibc's atfork handlers do not run. */
pid_t namespaces_clone(uint64_t flags, int *ret_pidfd, struct error *err);

/* Leaves open 0, 1, 2 and exactly `keep` (ascending, all above 2), moved to 3,
 * 4, …; everything else is closed. Updates the entries. */
int descriptors_keep(int *keep, size_t count, struct error *err);

#endif
