/* SPDX-License-Identifier: Apache-2.0 */
/* socket: the daemon's own place: one socket, one lock, one daemon. */
#ifndef EXECPY_SERVER_SOCKET_H
#define EXECPY_SERVER_SOCKET_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

#define SOCKET_PATH_MAX 108 /* of struct sockaddr_un, its NUL included */

struct place {
	char path[SOCKET_PATH_MAX];
	char lock_name[SOCKET_PATH_MAX + 8]; /* beside the socket: its name and ".lock" */
	const char *name;                    /* of the socket in its directory */
	int directory, lock, listener;       /* -1: not yet */
	dev_t device;                        /* of the socket that was made */
	ino_t inode;
};

/* Where a daemon serves when its command line does not say: $EXECPY_SOCKET, or
 * execpy.sock in $XDG_RUNTIME_DIR, or /run/execpy.sock for root. */
int place_default(char ret_path[SOCKET_PATH_MAX], struct error *err);

/* Takes the place for this process: the directory must be the user's or root's,
 * the lock must be free. -EBUSY when another daemon has it. place_leave() is due
 * in any case. */
int place_take(struct place *place, const char *path, struct error *err);
/* Makes the socket of that type, mode 0600, and listens. A dead daemon's is replaced; one
 * that somebody listens on is -EADDRINUSE, whatever else stands there -EEXIST. */
int place_listen(struct place *place, int type, struct error *err);
/* Removes the socket, if it is still the one that was made here: new clients
 * find none. */
void place_close(struct place *place);
void place_leave(struct place *place);

#endif
