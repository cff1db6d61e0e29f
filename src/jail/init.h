/* SPDX-License-Identifier: Apache-2.0 */
/* init: pid 1 of a cell. */
#ifndef EXECPY_JAIL_INIT_H
#define EXECPY_JAIL_INIT_H

#include "base/error.h"

#include <stdint.h>
#include <sys/types.h>

struct init_options {
	uint64_t cell;       /* the frame id of what it says */
	uint64_t disk_bytes; /* of the cell's tmpfs */
	int main_pid;        /* the in-namespace pid that the main process shall get */
	int socket;          /* to the warden */
};

/* Makes one as a child of the calling keeper. Returns its pid, or a negative
 * errno. Everything that goes wrong inside is said on its socket. */
pid_t init_start(const struct init_options *options, struct error *err);

#endif
