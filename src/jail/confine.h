/* SPDX-License-Identifier: Apache-2.0 */
/* confine: what a process of ours that strangers talk to does to itself. */
#ifndef EXECPY_JAIL_CONFINE_H
#define EXECPY_JAIL_CONFINE_H

#include "base/error.h"

#include <sys/types.h>

/* Confines the calling process for good: it has an empty root directory, is `identity` if
 * it was root, has no capability, no new privileges and no dump, may neither bind, connect,
 * execute nor signal, and makes only the system calls that serving needs. What it has open
 * stays open. Each step is checked after it is done. To be called with one thread, when
 * all that is opened by its name is open. Negative: a step failed, and the process must
 * end. */
int confine_server(uid_t identity, struct error *err);

#endif
