/* SPDX-License-Identifier: Apache-2.0 */
/* server: the process that serves HTTP: what its parts share.
 *
 * It is a child of the daemon and a client of the daemon's warden, confined before it
 * reads a client's first byte (serve.c). One process, one loop, no threads. */
#ifndef EXECPY_SERVER_SERVER_H
#define EXECPY_SERVER_SERVER_H

#include "server/http/connection.h"
#include "server/http/http.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/tenant.h"

#include "base/error.h"
#include "engine/async.h"
#include "engine/execpy.h"
#include "policy/http_config.h"

#include <event2/event.h>

/* Of parts that keep something of their own: theirs to define. */
struct rest;
struct mcp_http;
struct compat;
struct page;

struct server {
	struct execpy_engine *engine;
	struct event_base *base; /* the engine's */
	struct http http;
	struct http_numbers numbers;
	char **hosts, **compat; /* as configured; NULL-terminated, or NULL */
	char **compat_policy;   /* one, or NULL */
	struct tenants tenants;
	struct owned_session *sessions; /* owned.c */
	struct metrics metrics;
	struct logs logs;
	void *tls;     /* SSL_CTX, or NULL */
	bool stopping; /* no run may begin: 503 */
	bool again;    /* the loop shall not wait */
	/* Set and freed by their parts' begin() and end(). */
	struct rest *rest;
	struct mcp_http *mcp;
	struct compat *compat_state;
	struct page *page;
};

/* A set of routes and what they need; server/parts.c lists them. */
struct server_part {
	const char *name;
	const char *compat;         /* only when `compat` of the configuration names it; or NULL */
	const struct route *routes; /* the last has no method */
	/* Once, before the first request; may do what takes time. Or NULL. */
	int (*begin)(struct server *server, struct error *err);
	/* Between two turns of the loop: runs may begin here (engine/async.h). Or NULL. */
	void (*turn)(struct server *server);
	void (*end)(struct server *server); /* after the last request; or NULL */
};

extern const struct server_part *const server_parts[]; /* NULL-terminated */
bool server_part_is_on(const struct server *server, const struct server_part *part);

/* server/server.c */
/* The turn() of all parts is due again before the loop waits: for callbacks that have
 * noted something to begin. */
void server_wake(struct server *server);
/* While the server ends no run may begin: answers 503 and says true then. */
bool server_refuses(struct server *server, struct exchange *exchange);

/* server/admit.c: what of a request is looked at before its route's handler: 0, or the
 * status with which it is refused, and why. */
unsigned server_admit_origin(struct server *server, struct exchange *exchange, const char **why);
unsigned server_admit_tenant(struct server *server, struct exchange *exchange, bool open,
			     struct tenant **ret_tenant, const char **why);
/* server/log.c */
void server_log_exchange(struct server *server, struct exchange *exchange);

#endif
