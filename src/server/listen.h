/* SPDX-License-Identifier: Apache-2.0 */
/* listen: where HTTP is served: addresses, and the sockets that are bound to them. */
#ifndef EXECPY_SERVER_LISTEN_H
#define EXECPY_SERVER_LISTEN_H

#include "base/error.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#define LISTEN_DEFAULT "127.0.0.1:8765"

struct address {
	union {
		struct sockaddr any;
		struct sockaddr_storage storage;
		struct sockaddr_un local;
	} at;
	socklen_t length;
	bool only_here; /* loopback, or a unix socket: nobody reaches it from outside */
};

/* "127.0.0.1:8765", "[::1]:8765", "localhost:0", "unix:PATH". No other names. */
int address_parse(const char *text, struct address *ret_address, struct error *err);
/* A listening socket of TCP; a unix socket has its place (server/socket.h). */
int address_listen(const struct address *address, const char *text, struct error *err);
/* Where a socket listens that somebody else has bound. */
int address_of_listener(int fd, struct address *ret_address, struct error *err);

/* How many listening sockets a service manager has handed over (sd_listen_fds(3)): from
 * LISTEN_FIRST_FD on. The environment tells only once. */
#define LISTEN_FIRST_FD 3
unsigned listen_activated(void);

/* What a socket listens on, as a URL: "http://127.0.0.1:8765". */
void address_describe(int listener, bool tls, char *text, size_t size);

#endif
