/* SPDX-License-Identifier: Apache-2.0 */
/* http: requests and their responses, as the handlers of routes see them.
 *
 * An exchange is one request and its response (RFC 9110, 3). It belongs to its
 * connection; a handler borrows it from when it is called until it has ended the
 * response, or until it was told that the client is gone. Handlers run between two turns
 * of the loop, never inside of a callback of it, so they may begin runs
 * (engine/async.h). None of these functions waits. */
#ifndef EXECPY_SERVER_HTTP_HTTP_H
#define EXECPY_SERVER_HTTP_HTTP_H

#include "base/bounds.h"
#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

struct exchange;
struct http;   /* server/http/connection.h */
struct server; /* server/server.h */
struct tenant; /* server/tenant.h */
struct json;   /* engine/json.h */

enum route_body {
	ROUTE_NO_BODY, /* a request that brings one is refused */
	ROUTE_TEXT,    /* whole, in memory */
	ROUTE_FILE,    /* whole, in a file without a name */
};

struct route {
	const char *method; /* "GET": its handler answers HEAD, too */
	/* "/v1/sessions/{id}/files/{path*}": {…} takes one segment, {…*} the rest. */
	const char *path;
	enum route_body body;
	uint64_t body_bytes_max; /* 413 beyond */
	bool open;               /* without a key, too */
	void (*handle)(struct exchange *exchange);
};

/* --- the request ---------------------------------------------------------------- */

struct server *exchange_server(const struct exchange *exchange);
/* Whose key it came with; without keys there is one tenant, who may do everything. NULL:
 * nobody's, which only open routes meet. */
struct tenant *exchange_tenant(const struct exchange *exchange);
const char *exchange_method(const struct exchange *exchange);
/* What stands in the path for {name}: percent-decoded UTF-8 without a NUL. */
const char *exchange_parameter(const struct exchange *exchange, const char *name);
/* A parameter of the query, decoded likewise; NULL when it is not there. */
const char *exchange_query(const struct exchange *exchange, const char *name);
/* A field of the header by its lower-case name, several joined with ", "; or NULL. */
const char *exchange_header(const struct exchange *exchange, const char *name);
struct span exchange_body(const struct exchange *exchange);
/* What of a body counts for its tenant and the server while anything made of it is kept. */
struct held_body {
	struct http *http; /* NULL: nothing does */
	struct tenant *tenant;
	uint64_t bytes;
};
void held_body_drop(struct held_body *held);
/* What it counts for goes on counting when the exchange is over, until it is dropped. */
struct held_body exchange_take_held(struct exchange *exchange);
/* Of a ROUTE_FILE: a regular file, at its start; the exchange keeps it. */
int exchange_body_file(const struct exchange *exchange);

/* --- the response --------------------------------------------------------------- */

/* A field for the header; before the response begins. Control characters in the value
 * become '?'. */
void exchange_field(struct exchange *exchange, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The whole response. Takes over the bytes. */
void exchange_respond(struct exchange *exchange, unsigned status, const char *media_type,
		      struct bytes *body);
/* Or in parts: with its length, or -1 when that is not known yet. */
void exchange_begin(struct exchange *exchange, unsigned status, const char *media_type,
		    int64_t length);
void exchange_write(struct exchange *exchange, struct span part);
/* A part of a regular file, which the exchange takes over. */
void exchange_write_file(struct exchange *exchange, int fd, uint64_t offset, uint64_t length);
/* One more in this count until the exchange is over, whichever way; once an exchange. */
void exchange_count(struct exchange *exchange, unsigned *count);
/* It is whole. The exchange is not the handler's any more. */
void exchange_end(struct exchange *exchange);
/* It cannot become whole: the connection is closed, so that the client sees it. */
void exchange_break(struct exchange *exchange);
/* An error as RFC 9457 has it, application/problem+json: {type, title, status, detail}.
 * The detail is one sentence for a person. Ends the response. */
void exchange_problem(struct exchange *exchange, unsigned status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same object as a part of an answer. */
void http_write_problem(struct json *json, unsigned status, const char *detail);

/* What the client did not take yet. Whoever has more to write pauses above
 * EXCHANGE_HIGH_BYTES and goes on when `drained` says so. */
size_t exchange_unsent(const struct exchange *exchange);

/* Told from the loop (begin nothing there). `gone`: the client went away before the
 * response was whole, and the exchange is gone when this returns. */
struct exchange_watch {
	void (*gone)(void *user);
	void (*drained)(void *user); /* or NULL */
	void *user;
};
void exchange_watch(struct exchange *exchange, const struct exchange_watch *watch);

#endif
