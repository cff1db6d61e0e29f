/* SPDX-License-Identifier: Apache-2.0 */
/* daemon: `execpy serve`, which keeps a warden that many engines share. */
#ifndef EXECPY_SERVER_DAEMON_H
#define EXECPY_SERVER_DAEMON_H

#include "base/error.h"
#include "policy/config.h"

struct daemon_options {
	const char *socket;            /* its path */
	const char *const *listen;     /* for HTTP, instead of the configuration's; or NULL */
	const char *keys;              /* the file of them, likewise; or NULL */
	const char *config;            /* a file, read again at SIGHUP; NULL: the defaults */
	const char *program_directory; /* as in struct execpy_options */
	/* One line that a person should see, without a newline. It may hold what a
	 * template's modules said: to be made printable. */
	void (*say)(const char *line);
};

/* Serves what `config` says, which it takes over in any case, until SIGTERM or
 * SIGINT: 0 when it ended because of one. Negative when it could not begin, with
 * the reason: a taken socket, a layer of the sandbox that does not hold, a
 * template that does not load. Handles SIGTERM, SIGINT, SIGHUP and SIGCHLD
 * meanwhile. No other thread may run. */
int daemon_serve(const struct daemon_options *options, struct daemon_config *config,
		 struct error *err);

#endif
