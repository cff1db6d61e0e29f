/* SPDX-License-Identifier: Apache-2.0 */
/* connection: a client's bytes in and out, and how long that may take.
 *
 * Theory of operation. A connection that is idle has no buffers but empty ones: an
 * exchange is made with the first byte of a request and freed when its response is out.
 * One request is read at a time; what a client sends ahead stays in the input, which
 * holds HTTP_AHEAD_BYTES at most, and no further request is begun while the client leaves
 * much of the last response unread. Reading goes on while a response is made, so that the
 * end of the connection is seen at once.
 *
 *   HANDSHAKE → OPEN → FLUSHING → LINGERING → freed
 *
 * A client may end its side and still read (`nc -N`), and TCP does not say whether it
 * does. So it is sent an interim response, which a socket that is closed answers with a
 * reset, and looked at shortly after. Only where nothing of the response is out, and the
 * client knows of interim responses; else its end is the end.
 *
 * After a response that closes, what still comes is read and thrown away for a while: a
 * close with unread bytes makes a reset, and that may overtake the response. */
#include "server/http/connection.h"
#include "server/server.h"

#include "base/clock.h"

#include <errno.h>
#include <event2/buffer.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct evbuffer *connection_output(struct connection *connection)
{
	return bufferevent_get_output(connection->buffers);
}

static void set_timer(struct connection *connection, uint64_t ms)
{
	const struct timeval delay = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};

	evtimer_add(connection->timer, &delay);
}

void connection_free(struct connection *connection)
{
	struct http *http = connection->http;

	if (connection->exchange)
		exchange_free(connection->exchange);
	TAILQ_REMOVE(&http->connections, connection, entry);
	http->connection_count--;
	if (connection->timer)
		event_free(connection->timer);
	if (connection->buffers)
		bufferevent_free(connection->buffers);
	free(connection);
	http_listen_again(http);
}

/* The client is gone, or must go. */
static void lose(struct connection *connection)
{
	struct exchange *exchange = connection->exchange;

	if (exchange && exchange->on_stack) {
		exchange->is_gone = true;
		bufferevent_disable(connection->buffers, EV_READ | EV_WRITE);
		evtimer_del(connection->timer);
		return;
	}
	if (exchange)
		exchange_lose(exchange);
	connection_free(connection);
}

/* Something of it must go out between two looks; what came into the output only just now
 * has until the next. */
void connection_watch_output(struct connection *connection)
{
	connection->unsent_before = evbuffer_get_length(connection_output(connection));
	connection->sent_before = connection->sent;
	set_timer(connection, connection->http->server->numbers.unread_ms);
}

/* --- reading -------------------------------------------------------------------- */

static void read_head(struct connection *connection, struct evbuffer *input)
{
	struct exchange *exchange = connection->exchange;
	struct evbuffer_iovec piece;
	const char *why = "";
	unsigned refused = 0;
	bool whole = false;

	while (!whole && !refused && evbuffer_peek(input, -1, NULL, &piece, 1) > 0) {
		size_t taken = request_take_head(&exchange->request,
						 (struct span){piece.iov_base, piece.iov_len},
						 &whole, &refused, &why);

		evbuffer_drain(input, taken);
	}
	if (whole)
		refused = request_parse(&exchange->request, &why);
	if (refused) {
		exchange_refuse(exchange, refused, why);
	} else if (whole && exchange_admit(exchange)) {
		exchange->state = EXCHANGE_BODY;
		set_timer(connection, connection->http->server->numbers.body_ms);
	}
}

static bool keep_body(struct exchange *exchange, struct span data)
{
	const char *why = "";
	unsigned refused = exchange_hold(exchange, data.length, &why);

	exchange->body_bytes += data.length;
	if (refused) {
		if (refused == 429)
			exchange_field(exchange, "Retry-After", "1");
		exchange_refuse(exchange, refused, why);
		return false;
	}
	if (exchange->body_bytes > exchange->route->body_bytes_max) {
		exchange_refuse(exchange, 413, "the body is too large");
		return false;
	}
	if (exchange->route->body == ROUTE_FILE) {
		while (data.length > 0) {
			ssize_t r = write(exchange->body_file, data.data, data.length);

			if (r < 0) {
				exchange_refuse(exchange, 503, "the body cannot be kept");
				return false;
			}
			data.data += r;
			data.length -= (size_t)r;
		}
	} else if (bytes_append(&exchange->body, data.data, data.length) < 0) {
		exchange_refuse(exchange, 503, "the body cannot be kept");
		return false;
	}
	return true;
}

static bool body_is_whole(const struct exchange *exchange)
{
	return exchange->request.chunked ? exchange->chunks.state == CHUNK_END
					 : exchange->body_bytes == exchange->request.length;
}

static void read_body(struct connection *connection, struct evbuffer *input)
{
	struct exchange *exchange = connection->exchange;
	const struct request *request = &exchange->request;
	struct evbuffer_iovec piece;

	while (!body_is_whole(exchange) && evbuffer_peek(input, -1, NULL, &piece, 1) > 0) {
		struct span data = {piece.iov_base, piece.iov_len};
		long taken;

		if (request->chunked) {
			taken = chunks_take(&exchange->chunks, data, &data);
			if (taken < 0) {
				exchange_refuse(exchange, 400, "malformed chunks");
				return;
			}
		} else {
			if (data.length > request->length - exchange->body_bytes)
				data.length = (size_t)(request->length - exchange->body_bytes);
			taken = (long)data.length;
		}
		if (!keep_body(exchange, data))
			return;
		evbuffer_drain(input, (size_t)taken);
	}
	if (!body_is_whole(exchange))
		return;
	if (exchange->body_file >= 0)
		lseek(exchange->body_file, 0, SEEK_SET);
	evtimer_del(connection->timer);
	exchange->state = EXCHANGE_READY;
	TAILQ_INSERT_TAIL(&connection->http->ready, exchange, entry);
}

/* The client takes what it asked for before it gets more. on_write() goes on. */
static bool reading_waits(struct connection *connection)
{
	return !connection->exchange && connection->state == CONNECTION_OPEN &&
	       evbuffer_get_length(connection_output(connection)) > EXCHANGE_HIGH_BYTES;
}

/* As far as it goes with what is there. False when the connection is freed. */
static bool read_some(struct connection *connection)
{
	struct evbuffer *input = bufferevent_get_input(connection->buffers);

	while (connection->state == CONNECTION_OPEN && evbuffer_get_length(input) > 0 &&
	       !reading_waits(connection)) {
		struct exchange *exchange = connection->exchange;
		enum exchange_state state;

		if (!exchange) {
			exchange = connection->exchange = exchange_new(connection);
			if (!exchange) {
				lose(connection);
				return false;
			}
			set_timer(connection, connection->http->server->numbers.header_ms);
		}
		state = exchange->state;
		if (state == EXCHANGE_HEAD)
			read_head(connection, input);
		else if (state == EXCHANGE_BODY)
			read_body(connection, input);
		else
			break;
		/* Refusing may have freed it, but frees no connection. */
		if (connection->exchange == exchange && exchange->state == state)
			break;
	}
	if (connection->state == CONNECTION_OPEN && connection->exchange &&
	    connection->exchange->state == EXCHANGE_BODY && body_is_whole(connection->exchange))
		read_body(connection, input); /* an empty one */
	if (connection->state == CONNECTION_LINGERING)
		evbuffer_drain(input, evbuffer_get_length(input));
	return true;
}

static void on_end(struct connection *connection);

static void on_read(struct bufferevent *buffers, void *argument)
{
	struct connection *connection = argument;

	if (read_some(connection) && connection->half_closed)
		on_end(connection);
}

/* --- writing -------------------------------------------------------------------- */

static void linger(struct connection *connection)
{
	struct evbuffer *input = bufferevent_get_input(connection->buffers);

	connection->state = CONNECTION_LINGERING;
	if (connection->is_tls)
		tls_say_end(connection->buffers);
	shutdown(bufferevent_getfd(connection->buffers), SHUT_WR);
	evbuffer_drain(input, evbuffer_get_length(input));
	bufferevent_setwatermark(connection->buffers, EV_READ, 0, HTTP_AHEAD_BYTES);
	bufferevent_enable(connection->buffers, EV_READ);
	set_timer(connection, HTTP_LINGER_MS);
	if (connection->half_closed)
		connection_free(connection);
}

bool connection_is_last(const struct connection *connection)
{
	return connection->http->stopping ||
	       (connection->half_closed &&
		evbuffer_get_length(bufferevent_get_input(connection->buffers)) == 0);
}

/* Closes when what is in the output is out. */
static void flush(struct connection *connection)
{
	connection->state = CONNECTION_FLUSHING;
	connection_watch_output(connection);
}

/* No request is under way: until the next, or while the last response goes out. */
static void rest(struct connection *connection)
{
	if (evbuffer_get_length(connection_output(connection)) > 0)
		connection_watch_output(connection);
	else
		set_timer(connection, connection->http->server->numbers.idle_ms);
}

void connection_stop(struct connection *connection)
{
	if (connection->exchange || connection->state > CONNECTION_OPEN)
		return;
	if (evbuffer_get_length(connection_output(connection)) > 0)
		flush(connection);
	else
		connection_free(connection);
}

void connection_proceed(struct connection *connection)
{
	struct exchange *exchange = connection->exchange;
	bool close = exchange->close || connection_is_last(connection);

	exchange_free(exchange);
	evtimer_del(connection->timer);
	if (close)
		flush(connection);
	else
		rest(connection);
	/* Not from here, where others may still look at it. */
	bufferevent_trigger(connection->buffers, EV_READ | EV_WRITE,
			    BEV_TRIG_IGNORE_WATERMARKS | BEV_TRIG_DEFER_CALLBACKS);
}

void connection_send(struct connection *connection)
{
	struct evbuffer *output = connection_output(connection);
	int fd = bufferevent_getfd(connection->buffers);

	if (connection->is_tls || !(bufferevent_get_enabled(connection->buffers) & EV_WRITE))
		return;
	/* Only bufferevent itself takes from its output, which is frozen for others. What
	 * fails is found by its own next attempt. */
	evbuffer_unfreeze(output, 1);
	(void)evbuffer_write(output, fd);
	evbuffer_freeze(output, 1);
}

/* The output is nearly empty. */
static void on_write(struct bufferevent *buffers, void *argument)
{
	struct connection *connection = argument;
	struct exchange *exchange = connection->exchange;

	if (connection->state == CONNECTION_FLUSHING) {
		if (evbuffer_get_length(connection_output(connection)) == 0)
			linger(connection);
		return;
	}
	if (!exchange && connection->state == CONNECTION_OPEN) {
		rest(connection);
		if (read_some(connection) && connection->half_closed)
			on_end(connection);
		return;
	}
	if (!exchange || exchange->state < EXCHANGE_BEGUN)
		return;
	connection_pump(connection);
	if (connection->exchange == exchange && exchange->state == EXCHANGE_BEGUN &&
	    exchange_unsent(exchange) <= EXCHANGE_LOW_BYTES)
		exchange_drained(exchange);
}

/* --- its end -------------------------------------------------------------------- */

/* The client sends nothing more. */
static void on_end(struct connection *connection)
{
	struct exchange *exchange = connection->exchange;
	static const char interim[] = "HTTP/1.1 102 Processing\r\n\r\n";

	connection->half_closed = true;
	if (reading_waits(connection))
		return;
	if (!exchange && connection->state == CONNECTION_OPEN &&
	    evbuffer_get_length(connection_output(connection)) > 0) {
		flush(connection); /* the last response may still be read */
		return;
	}
	if (connection->state == CONNECTION_FLUSHING)
		return;
	if (connection->state == CONNECTION_LINGERING || !exchange || connection->is_tls) {
		lose(connection);
		return;
	}
	if (exchange->state == EXCHANGE_HEAD || exchange->state == EXCHANGE_BODY) {
		exchange_refuse(exchange, 400, "the request is cut short");
		return;
	}
	if (exchange->state == EXCHANGE_READY)
		return; /* http_turn() looks at it again */
	if (exchange->state == EXCHANGE_ENDED)
		return;
	if (exchange->state == EXCHANGE_BEGUN || exchange->request.is_1_0) {
		lose(connection);
		return;
	}
	evbuffer_add(connection_output(connection), interim, sizeof interim - 1);
	set_timer(connection, HTTP_PEER_FIRST_MS);
}

/* Whether the client has closed both sides, as far as the kernel knows by now. */
static bool is_closed(struct connection *connection)
{
	struct pollfd polled = {.fd = bufferevent_getfd(connection->buffers)};

	return poll(&polled, 1, 0) > 0 && (polled.revents & (POLLHUP | POLLERR | POLLNVAL));
}

void connection_look_again(struct connection *connection)
{
	if (connection->half_closed && connection->exchange &&
	    connection->exchange->state == EXCHANGE_HANDLED)
		on_end(connection);
}

static void on_event(struct bufferevent *buffers, short what, void *argument)
{
	struct connection *connection = argument;

	if (what & BEV_EVENT_CONNECTED) {
		connection->state = CONNECTION_OPEN;
		set_timer(connection, connection->http->server->numbers.idle_ms);
	} else if ((what & BEV_EVENT_EOF) && !(what & BEV_EVENT_WRITING)) {
		if (read_some(connection)) /* what came before its end */
			on_end(connection);
	} else {
		lose(connection);
	}
}

static void look_at_output(struct connection *connection)
{
	if (connection->unsent_before > 0 && connection->sent == connection->sent_before)
		lose(connection);
	else
		connection_watch_output(connection);
}

static void on_timer(evutil_socket_t fd, short what, void *argument)
{
	struct connection *connection = argument;
	struct exchange *exchange = connection->exchange;

	if (connection->state != CONNECTION_OPEN && connection->state != CONNECTION_FLUSHING) {
		lose(connection);
	} else if (connection->state == CONNECTION_FLUSHING ||
		   (!exchange && evbuffer_get_length(connection_output(connection)) > 0)) {
		look_at_output(connection);
	} else if (!exchange) {
		lose(connection); /* idle */
	} else if (exchange->state == EXCHANGE_HEAD || exchange->state == EXCHANGE_BODY) {
		exchange_refuse(exchange, 408, "the request did not come to its end in time");
	} else if (exchange->state >= EXCHANGE_BEGUN) {
		look_at_output(connection);
	} else if (connection->half_closed) {
		if (is_closed(connection))
			lose(connection);
		else
			set_timer(connection, HTTP_PEER_LOOK_MS);
	}
}

static void on_sent(struct evbuffer *output, const struct evbuffer_cb_info *info, void *argument)
{
	struct connection *connection = argument;

	connection->sent += info->n_deleted;
}

void connection_begin(struct http *http, int fd, const char *peer, bool is_local, void *tls)
{
	struct connection *connection = calloc(1, sizeof *connection);
	const int one = 1;

	if (!connection) {
		close(fd);
		return;
	}
	connection->http = http;
	connection->is_local = is_local;
	snprintf(connection->peer, sizeof connection->peer, "%s", peer);
	TAILQ_INSERT_TAIL(&http->connections, connection, entry);
	http->connection_count++;
	http->connections_total++;
	if (!is_local)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	connection->timer = evtimer_new(http->base, on_timer, connection);
	if (tls)
		connection->buffers = tls_buffers(http, fd, tls);
	else
		connection->buffers = bufferevent_socket_new(http->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!connection->timer || !connection->buffers) {
		if (!connection->buffers)
			close(fd);
		connection_free(connection);
		return;
	}
	connection->is_tls = tls;
	connection->state = tls ? CONNECTION_HANDSHAKE : CONNECTION_OPEN;
	evbuffer_add_cb(connection_output(connection), on_sent, connection);
	bufferevent_setcb(connection->buffers, on_read, on_write, on_event, connection);
	bufferevent_setwatermark(connection->buffers, EV_READ, 0, HTTP_AHEAD_BYTES);
	bufferevent_setwatermark(connection->buffers, EV_WRITE, EXCHANGE_LOW_BYTES, 0);
	bufferevent_enable(connection->buffers, EV_READ | EV_WRITE);
	set_timer(connection,
		  tls ? http->server->numbers.header_ms : http->server->numbers.idle_ms);
}
