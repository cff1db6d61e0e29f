/* SPDX-License-Identifier: Apache-2.0 */
/* front: the daemon's end of its HTTP server: the sockets, the files, the process. */
#ifndef EXECPY_SERVER_FRONT_H
#define EXECPY_SERVER_FRONT_H

#include "base/error.h"
#include "policy/http_config.h"

#include <event2/event.h>
#include <stdbool.h>
#include <sys/types.h>

struct front;

struct front_options {
	struct event_base *base;
	const char *program_directory;
	const char *socket;        /* of the warden */
	uid_t identity;            /* what the process becomes; 0: stays who it is */
	const char *const *listen; /* of the command line, instead of the configuration's */
	const char *keys;          /* likewise; or NULL */
	/* It serves; it never did, and why; it has ended after front_drain(). */
	void (*serving)(void *user, const char *where);
	void (*failed)(void *user, const char *why);
	void (*ended)(void *user);
	void (*say)(void *user, const char *line);
	void *user;
};

/* Binds what the configuration says. *ret_front is NULL when HTTP is not served at all.
 * The options' texts must stay. */
int front_new(const struct front_options *options, const struct http_config *config,
	      struct front **ret_front, struct error *err);
/* Starts the process: `serving` or `failed` will be called. */
int front_start(struct front *front, struct error *err);
/* Reads the files anew and hands them on. Negative: nothing changed, and why. */
int front_reload(struct front *front, const struct http_config *config, struct error *err);
void front_drain(struct front *front); /* NULL-safe, as are those that follow */
void front_end(struct front *front);   /* at once */
/* A child has ended: it may be this one. */
void front_reap(struct front *front);
bool front_is_over(const struct front *front);
void front_free(struct front *front); /* ends it, waits for it, removes its sockets */

#endif
