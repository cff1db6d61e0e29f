/* SPDX-License-Identifier: Apache-2.0 */
/* http: listeners, and the requests that are ready to be handled. */
#include "server/http/connection.h"
#include "server/server.h"

#include "base/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct listener {
	TAILQ_ENTRY(listener) entry;
	struct http *http;
	struct event *event, *again; /* again: after it was deaf for want of descriptors */
	int fd;
	bool is_local;
};

const char *http_reason(unsigned status)
{
	static const struct {
		unsigned status;
		const char *reason;
	} reasons[] = {
		{100, "Continue"},
		{200, "OK"},
		{201, "Created"},
		{202, "Accepted"},
		{204, "No Content"},
		{206, "Partial Content"},
		{304, "Not Modified"},
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{406, "Not Acceptable"},
		{408, "Request Timeout"},
		{409, "Conflict"},
		{410, "Gone"},
		{411, "Length Required"},
		{412, "Precondition Failed"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{415, "Unsupported Media Type"},
		{416, "Range Not Satisfiable"},
		{417, "Expectation Failed"},
		{421, "Misdirected Request"},
		{422, "Unprocessable Content"},
		{429, "Too Many Requests"},
		{431, "Request Header Fields Too Large"},
		{500, "Internal Server Error"},
		{501, "Not Implemented"},
		{503, "Service Unavailable"},
		{504, "Gateway Timeout"},
		{505, "HTTP Version Not Supported"},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown";
}

static void describe_peer(const struct sockaddr_storage *address, char peer[64])
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
	char text[INET6_ADDRSTRLEN] = "";

	if (address->ss_family == AF_INET) {
		inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
		snprintf(peer, 64, "%s:%u", text, ntohs(four->sin_port));
	} else if (address->ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
		snprintf(peer, 64, "[%s]:%u", text, ntohs(six->sin6_port));
	} else {
		snprintf(peer, 64, "unix");
	}
}

/* Others of this system may have what is wanting, so no connection need end for it. */
static void listen_later(struct listener *listener)
{
	const struct timeval delay = {HTTP_ACCEPT_AGAIN_MS / 1000,
				      HTTP_ACCEPT_AGAIN_MS % 1000 * 1000};

	if (evtimer_add(listener->again, &delay) == 0)
		event_del(listener->event);
}

static void on_again(evutil_socket_t fd, short what, void *argument)
{
	struct listener *listener = argument;

	http_listen_again(listener->http);
}

static void on_client(evutil_socket_t fd, short what, void *argument)
{
	struct listener *listener = argument;
	struct http *http = listener->http;
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof address;
	char peer[64];
	int client =
		accept4(fd, (struct sockaddr *)&address, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (client < 0) {
		/* Out of descriptors: again when one is free, or soon. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			listen_later(listener);
		return;
	}
	describe_peer(&address, peer);
	connection_begin(http, client, peer, listener->is_local,
			 listener->is_local ? NULL : http->server->tls);
	if (http->connection_count >= http->server->numbers.connections)
		TAILQ_FOREACH(listener, &http->listeners, entry)
	event_del(listener->event);
}

void http_listen_again(struct http *http)
{
	struct listener *listener;

	if (http->stopping || http->connection_count >= http->server->numbers.connections)
		return;
	TAILQ_FOREACH(listener, &http->listeners, entry)
	if (!event_pending(listener->event, EV_READ, NULL))
		event_add(listener->event, NULL);
}

int http_listen(struct http *http, int fd, struct error *err)
{
	struct listener *listener = calloc(1, sizeof *listener);
	struct sockaddr_storage address;
	socklen_t length = sizeof address;

	if (listener) {
		listener->event =
			event_new(http->base, fd, EV_READ | EV_PERSIST, on_client, listener);
		listener->again = evtimer_new(http->base, on_again, listener);
	}
	if (!listener || !listener->event || !listener->again ||
	    event_add(listener->event, NULL) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) < 0) {
		if (listener && listener->event)
			event_free(listener->event);
		if (listener && listener->again)
			event_free(listener->again);
		free(listener);
		return fail(err, ENOMEM, "http: listen");
	}
	listener->http = http;
	listener->fd = fd;
	listener->is_local = address.ss_family == AF_UNIX;
	TAILQ_INSERT_TAIL(&http->listeners, listener, entry);
	return 0;
}

static void close_listeners(struct http *http)
{
	struct listener *listener;

	while ((listener = TAILQ_FIRST(&http->listeners))) {
		TAILQ_REMOVE(&http->listeners, listener, entry);
		event_free(listener->event);
		event_free(listener->again);
		close_fd(&listener->fd);
		free(listener);
	}
}

void http_init(struct http *http, struct server *server, struct event_base *base)
{
	*http = (struct http){.server = server, .base = base};
	TAILQ_INIT(&http->connections);
	TAILQ_INIT(&http->ready);
	TAILQ_INIT(&http->listeners);
}

static void handle(struct http *http, struct exchange *exchange)
{
	struct connection *connection = exchange->connection;

	TAILQ_REMOVE(&http->ready, exchange, entry);
	exchange->state = EXCHANGE_HANDLED;
	exchange->on_stack = true;
	http->requests_total++;
	exchange->route->handle(exchange);
	exchange->on_stack = false;
	if (exchange->is_gone) {
		exchange_lose(exchange);
		connection_free(connection);
	} else if (exchange->state == EXCHANGE_ENDED && TAILQ_EMPTY(&exchange->parts)) {
		connection_proceed(connection);
	} else {
		connection_look_again(connection);
	}
}

bool http_turn(struct http *http)
{
	/* Those that are there now: what they lead to waits for the loop. */
	unsigned count = 0;
	struct exchange *exchange;

	TAILQ_FOREACH(exchange, &http->ready, entry)
	count++;
	while (count-- > 0 && (exchange = TAILQ_FIRST(&http->ready)))
		handle(http, exchange);
	return !TAILQ_EMPTY(&http->ready);
}

void http_stop(struct http *http)
{
	struct connection *connection, *next;

	http->stopping = true;
	close_listeners(http);
	for (connection = TAILQ_FIRST(&http->connections); connection; connection = next) {
		next = TAILQ_NEXT(connection, entry);
		connection_stop(connection);
	}
}

void http_free(struct http *http)
{
	struct connection *connection;

	http->stopping = true;
	close_listeners(http);
	while ((connection = TAILQ_FIRST(&http->connections))) {
		/* Whoever makes a response is told that nobody is there for it. */
		if (connection->exchange)
			exchange_lose(connection->exchange);
		connection_free(connection);
	}
}
