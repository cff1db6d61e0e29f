/* SPDX-License-Identifier: Apache-2.0 */
/* owner: the end of a daemon's warden that keeps it.
 *
 * A daemon is a warden to which many engines connect. Its owner starts it,
 * tells it its templates and numbers, and hands it the listening socket; from
 * then on the two only watch each other. When the owner's connection ends the
 * warden goes with everything that it holds. */
#ifndef EXECPY_ENGINE_OWNER_H
#define EXECPY_ENGINE_OWNER_H

#include "base/bytes.h"
#include "base/error.h"
#include "policy/config.h"

#include <sys/types.h>

struct owner {
	pid_t process; /* ends when all of the warden is gone; 0: reaped, or none */
	int socket;    /* readable when there is a word to read; -1: ended */
	struct bytes buffer;
};

/* What the warden said, or that it is gone. */
enum owner_word {
	OWNER_NOTHING, /* nothing that matters to its owner */
	OWNER_SERVING, /* every template stands; clients are answered */
	OWNER_FAILED,  /* and why; it ends */
	OWNER_GONE,    /* its connection has ended */
};

/* Starts a warden and tells it what to serve. `listener` stays the caller's.
 * Started as root it becomes `identity`, unless that is 0. On failure nothing is left. */
int owner_start(struct owner *owner, const char *program_directory, uid_t identity,
		const struct daemon_config *config, int listener, struct error *err);
/* Reads one message; `why` gets one printable line with OWNER_FAILED. */
enum owner_word owner_read(struct owner *owner, char why[ERROR_TEXT_MAX]);
/* It accepts nobody any more, lets its runs end, and then ends itself. */
void owner_drain(struct owner *owner);
/* Ends it at once, with all its runs. Its process is still to be waited for. */
void owner_end(struct owner *owner);
/* Reaps the process if it has ended, or waits for it. True when it is gone. */
bool owner_reap(struct owner *owner, bool wait);
void owner_free(struct owner *owner);

/* Starts the program that serves HTTP (server/link.h), likewise. */
int spawn_server_process(const char *program_directory, pid_t *ret_pid, int *ret_socket,
			 struct error *err);

#endif
