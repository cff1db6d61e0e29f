/* SPDX-License-Identifier: Apache-2.0 */
/* connection: what the files of http share. */
#ifndef EXECPY_SERVER_HTTP_CONNECTION_H
#define EXECPY_SERVER_HTTP_CONNECTION_H

#include "server/http/http.h"
#include "server/http/request.h"
#include "server/http/tls.h"

#include "base/error.h"

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <sys/queue.h>

/* What a server serves over HTTP, and how patient it is. */
struct http {
	struct server *server;
	struct event_base *base;
	TAILQ_HEAD(, connection) connections;
	TAILQ_HEAD(, exchange) ready; /* requests that are whole: http_turn() handles them */
	TAILQ_HEAD(, listener) listeners;
	unsigned connection_count, exchange_count;
	bool stopping;       /* answers, but keeps no connection */
	uint64_t body_bytes; /* that are held (bodies.c) */
	uint64_t connections_total, requests_total, refused_total;
};

enum exchange_state {
	EXCHANGE_HEAD,    /* it comes in */
	EXCHANGE_BODY,    /* so does its body */
	EXCHANGE_READY,   /* whole, and to be handled */
	EXCHANGE_HANDLED, /* its handler has it */
	EXCHANGE_BEGUN,   /* the response's header is out */
	EXCHANGE_ENDED,   /* nothing more comes of it, but what is pending */
};

#define ROUTE_PARAMETERS_MAX      4
#define RESPONSE_FIELDS_BYTES_MAX (16 * KIB)

/* Bytes, or a part of a file, that follow what is in the output already. */
struct part {
	TAILQ_ENTRY(part) entry;
	struct bytes bytes;
	int fd;
	uint64_t offset, left;
};

struct exchange {
	struct connection *connection;
	TAILQ_ENTRY(exchange) entry; /* while it is ready */
	enum exchange_state state;
	struct request request;
	struct chunks chunks;
	const struct route *route;
	struct tenant *tenant;
	struct {
		struct span name; /* as the route's pattern has it */
		char *value;
	} parameters[ROUTE_PARAMETERS_MAX];
	unsigned parameter_count;
	char *query;    /* that exchange_query() has decoded */
	char **queries; /* name, value, name, value, …, NULL */
	char *joined[HTTP_FIELDS_MAX];
	struct bytes body;
	uint64_t body_bytes;
	struct held_body held;
	unsigned *counted; /* exchange_count() */
	int body_file;
	/* The response. */
	struct bytes fields;
	unsigned status;
	int64_t length; /* that was announced; -1: none */
	uint64_t written;
	bool without_body, chunked, close;
	TAILQ_HEAD(, part) parts;
	struct exchange_watch watch;
	bool on_stack;    /* its handler has not returned */
	bool is_gone;     /* to be told when it has */
	bool above;       /* more is unsent than EXCHANGE_LOW_BYTES */
	int64_t began_us; /* its first byte */
};

enum connection_state {
	CONNECTION_HANDSHAKE, /* of TLS */
	CONNECTION_OPEN,
	CONNECTION_FLUSHING,  /* the last response goes out */
	CONNECTION_LINGERING, /* it is out; what the client still sends is thrown away */
};

struct connection {
	struct http *http;
	TAILQ_ENTRY(connection) entry;
	struct bufferevent *buffers;
	struct event *timer;
	struct exchange *exchange; /* or NULL: idle */
	enum connection_state state;
	bool is_local; /* a unix socket */
	bool is_tls, half_closed;
	size_t unsent_before; /* when the timer looked last */
	uint64_t sent, sent_before;
	char peer[64];
};

/* connection.c */
/* Takes over the descriptor. */
void connection_begin(struct http *http, int fd, const char *peer, bool is_local, void *tls);
void connection_free(struct connection *connection);
/* No further request is taken: it goes, once what it was answered is out. */
void connection_stop(struct connection *connection);
/* The exchange is over: what becomes of the connection. */
void connection_proceed(struct connection *connection);
/* No request follows the one under way. */
bool connection_is_last(const struct connection *connection);
/* The client has ended its side before the handler had the request. */
void connection_look_again(struct connection *connection);
struct evbuffer *connection_output(struct connection *connection);
/* Puts more of a response's parts into the output, as much as there is room for. */
void connection_pump(struct connection *connection);
/* Sends what is in the output and fits into the socket, without a turn of the loop. Puts
 * off what follows from it, so nothing is freed. */
void connection_send(struct connection *connection);
/* Looks after the output from now on. */
void connection_watch_output(struct connection *connection);

/* exchange.c */
struct exchange *exchange_new(struct connection *connection);
void exchange_free(struct exchange *exchange);
/* The client is gone: tells the handler, and frees it, now or when the handler returns. */
void exchange_lose(struct exchange *exchange);
/* The head is whole: finds the route. False when it was answered already. */
bool exchange_admit(struct exchange *exchange);
/* Answers what never became a request, and closes. */
void exchange_refuse(struct exchange *exchange, unsigned status, const char *why);
void exchange_drained(struct exchange *exchange);
size_t exchange_pending(const struct exchange *exchange); /* bytes of its parts in memory */

/* bodies.c */
/* Counts more of the body that comes: 0, or the status with which it is refused. */
unsigned exchange_hold(struct exchange *exchange, uint64_t bytes, const char **why);

/* route.c */
/* The route of a path for a method: NULL with 404, or 405 and the methods there are. */
const struct route *route_find(struct exchange *exchange, unsigned *ret_status,
			       struct bytes *allowed);

/* admit.c is exchange_admit() */

/* http.c */
/* There may be room for connections again. */
void http_listen_again(struct http *http);
void http_init(struct http *http, struct server *server, struct event_base *base);
/* Serves what connects to this socket, too, which it takes over when it can. */
int http_listen(struct http *http, int fd, struct error *err);
/* Takes no connection any more, and closes those that have nothing under way. */
void http_stop(struct http *http);
/* Handles what came in. True when there is more to handle at once. */
bool http_turn(struct http *http);
void http_free(struct http *http);
const char *http_reason(unsigned status);

#endif
