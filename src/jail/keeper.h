/* SPDX-License-Identifier: Apache-2.0 */
/* keeper: pid 1 of a template's jail. */
#ifndef EXECPY_JAIL_KEEPER_H
#define EXECPY_JAIL_KEEPER_H

#include "base/error.h"

#include <sys/types.h>

struct keeper_options {
	uid_t outside_uid; /* the id that SANDBOX_ID stands for */
	gid_t outside_gid;
	int font_list;              /* matplotlib's, open for reading, or -1 */
	const char *font_list_name; /* under /var/cache/execpy */
	int program;                /* execpy-keeper, open */
	char *const *environment;   /* of the template */
	int socket;                 /* to the warden: SEQPACKET */
};

#define KEEPER_SOCKET 3 /* in its own program */

/* Starts a keeper as a child of the calling warden. Returns its pid and in
 * *ret_pidfd a descriptor of it; to kill the keeper is to end its template and
 * all cells. It dies with its parent. Once its root is built it says
 * MESSAGE_READY, or MESSAGE_FAILED, and then obeys MESSAGE_MAKE_TEMPLATE and
 * MESSAGE_MAKE_INIT. */
pid_t keeper_start(const struct keeper_options *options, int *ret_pidfd, struct error *err);

#endif
