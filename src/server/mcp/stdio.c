/* SPDX-License-Identifier: Apache-2.0 */
/* stdio: one MCP client over stdin and stdout, a message a line.
 *
 * The loop's callbacks only read, write and note; messages are handled between its
 * turns (engine/async.h says why). A client that does not read its answers is not read
 * from either. A line that is too long is answered at once, and left out to its end. */
#include "server/mcp/protocol.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "policy/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#define READ_BYTES (64 * 1024)

struct outgoing {
	TAILQ_ENTRY(outgoing) entry;
	struct bytes bytes;
};

struct stdio {
	struct mcp_server server;
	struct mcp_client client;
	struct event *readable, *writable, *signals[2];
	bool pollable; /* stdin; a regular file is not */
	struct bytes in;
	size_t at, scanned; /* of the next line; how far there is no newline */
	bool skipping;      /* the rest of a line that was too long */
	bool ended, stopped, broken;
	TAILQ_HEAD(, outgoing) out;
	size_t out_at, unsent;
};

static void drop_first(struct stdio *stdio)
{
	struct outgoing *first = TAILQ_FIRST(&stdio->out);

	TAILQ_REMOVE(&stdio->out, first, entry);
	bytes_free(&first->bytes);
	free(first);
	stdio->out_at = 0;
}

/* As much as the client takes now. True when there is more. */
static bool write_some(struct stdio *stdio)
{
	struct outgoing *first;

	while (!stdio->broken && (first = TAILQ_FIRST(&stdio->out))) {
		ssize_t r = write(STDOUT_FILENO, first->bytes.data + stdio->out_at,
				  first->bytes.length - stdio->out_at);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0 && errno == EAGAIN)
			return true;
		if (r < 0) {
			stdio->broken = true;
			break;
		}
		stdio->out_at += (size_t)r;
		stdio->unsent -= (size_t)r;
		if (stdio->out_at == first->bytes.length)
			drop_first(stdio);
	}
	return false;
}

static void on_writable(evutil_socket_t fd, short what, void *argument)
{
	struct stdio *stdio = argument;

	if (write_some(stdio))
		event_add(stdio->writable, NULL);
}

static void send_line(void *user, void *carrier, enum mcp_kind kind, struct bytes *message)
{
	struct stdio *stdio = user;
	struct outgoing *outgoing = calloc(1, sizeof *outgoing);

	if (!outgoing) {
		bytes_free(message);
		stdio->broken = true; /* an answer is missing: that is the end */
		return;
	}
	outgoing->bytes = *message;
	*message = (struct bytes){0};
	stdio->unsent += outgoing->bytes.length;
	TAILQ_INSERT_TAIL(&stdio->out, outgoing, entry);
	if (write_some(stdio))
		event_add(stdio->writable, NULL);
}

static void read_some(struct stdio *stdio)
{
	uint8_t *room;
	ssize_t r;

	/* What was handled makes room first. */
	if (stdio->at > 0) {
		memmove(stdio->in.data, stdio->in.data + stdio->at, stdio->in.length - stdio->at);
		stdio->in.length -= stdio->at;
		stdio->scanned -= stdio->at;
		stdio->at = 0;
	}
	room = bytes_reserve(&stdio->in, READ_BYTES);
	r = room ? read(STDIN_FILENO, room, READ_BYTES) : 0;
	if (r < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (r <= 0)
		stdio->ended = true;
	else
		stdio->in.length += (size_t)r;
}

static void on_readable(evutil_socket_t fd, short what, void *argument)
{
	read_some(argument);
}

static void on_signal(evutil_socket_t number, short what, void *argument)
{
	struct stdio *stdio = argument;

	stdio->stopped = true;
}

/* The next whole line. Those that are too long are answered here. */
static bool next_line(struct stdio *stdio, struct span *ret_line)
{
	/* What was looked at before has no newline, and its length was judged. */
	while (stdio->scanned < stdio->in.length) {
		uint8_t *from = stdio->in.data + stdio->at;
		uint8_t *newline = memchr(stdio->in.data + stdio->scanned, '\n',
					  stdio->in.length - stdio->scanned);
		size_t length = newline ? (size_t)(newline - from) : stdio->in.length - stdio->at;
		bool too_long = length > MCP_LINE_BYTES_MAX;

		if (too_long && !stdio->skipping)
			mcp_refuse_length(&stdio->client, NULL);
		if (!newline) {
			stdio->skipping |= too_long;
			if (stdio->skipping)
				stdio->at = stdio->in.length;
			stdio->scanned = stdio->in.length;
			return false;
		}
		stdio->at += length + 1;
		stdio->scanned = stdio->at;
		if (!stdio->skipping && !too_long) {
			*ret_line = (struct span){from, length};
			return true;
		}
		stdio->skipping = false;
	}
	return false;
}

static bool is_blank(struct span line)
{
	static const char blanks[] = {' ', '\t', '\r'};

	while (line.length > 0 && memchr(blanks, line.data[line.length - 1], sizeof blanks))
		line.length--;
	return line.length == 0;
}

static int turn(struct stdio *stdio)
{
	struct event_base *base = async_base(stdio->server.engine);
	bool wants = !stdio->ended && stdio->unsent < MCP_UNSENT_BYTES;
	int flags = EVLOOP_ONCE;

	if (wants && !stdio->pollable) {
		read_some(stdio);
		flags |= EVLOOP_NONBLOCK;
	} else if (wants) {
		event_add(stdio->readable, NULL);
	} else if (stdio->pollable) {
		event_del(stdio->readable);
	}
	return event_base_loop(base, flags);
}

static int serve(struct stdio *stdio, struct error *err)
{
	struct span line;

	while (!stdio->stopped && !stdio->broken) {
		const char *dead = async_dead(stdio->server.engine);

		mcp_proceed(&stdio->server);
		if (stdio->unsent < MCP_UNSENT_BYTES && next_line(stdio, &line)) {
			if (!is_blank(line))
				mcp_receive(&stdio->client, line, NULL);
			continue;
		}
		if (stdio->ended)
			break; /* also when it does not take what it asked for */
		if (dead && stdio->client.call_count == 0)
			return refuse(err, EPIPE, "%s", dead);
		if (turn(stdio) < 0)
			return refuse(err, EIO, "the event loop ended");
	}
	return 0;
}

/* Answers that are under way may still be read. */
static void flush(struct stdio *stdio)
{
	struct pollfd polled = {.fd = STDOUT_FILENO, .events = POLLOUT};
	int64_t deadline = now_us() + MCP_FLUSH_MS * 1000;

	while (write_some(stdio) && now_us() < deadline &&
	       poll(&polled, 1, (int)((deadline - now_us()) / 1000 + 1)) > 0)
		;
}

static int prepare(struct stdio *stdio, struct error *err)
{
	static const int numbers[] = {SIGTERM, SIGINT};
	struct event_base *base = async_base(stdio->server.engine);

	stdio->readable = event_new(base, STDIN_FILENO, EV_READ, on_readable, stdio);
	stdio->writable = event_new(base, STDOUT_FILENO, EV_WRITE, on_writable, stdio);
	for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++) {
		stdio->signals[i] = evsignal_new(base, numbers[i], on_signal, stdio);
		if (!stdio->signals[i] || event_add(stdio->signals[i], NULL) < 0)
			return refuse(err, ENOMEM, "mcp: no event");
	}
	if (!stdio->readable || !stdio->writable)
		return refuse(err, ENOMEM, "mcp: no event");
	stdio->pollable = event_add(stdio->readable, NULL) == 0;
	return 0;
}

static void release(struct stdio *stdio)
{
	struct event *const events[] = {stdio->readable, stdio->writable, stdio->signals[0],
					stdio->signals[1]};

	for (size_t i = 0; i < ARRAY_LENGTH(events); i++)
		if (events[i])
			event_free(events[i]);
	while (!TAILQ_EMPTY(&stdio->out))
		drop_first(stdio);
	bytes_free(&stdio->in);
}

int mcp_serve(struct execpy_engine *engine, const struct mcp_options *options, struct error *err)
{
	static const struct mcp_transport transport = {.send = send_line};
	struct stdio stdio = {.in.ceiling = MCP_LINE_BYTES_MAX + 2 * READ_BYTES};
	int flags = fcntl(STDOUT_FILENO, F_GETFL), r;

	autopolicy policy = {0};

	/* Better said now than to each call. */
	if (options->policy && policy_load(options->policy, &policy, err) < 0)
		return -EINVAL;
	TAILQ_INIT(&stdio.out);
	mcp_server_init(&stdio.server, engine, &mcp_python_offer, options);
	mcp_client_init(&stdio.client, &stdio.server, &transport, &stdio);
	if (flags < 0 || fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK) < 0)
		return fail(err, errno, "stdout");
	r = prepare(&stdio, err);
	if (r == 0)
		r = serve(&stdio, err);
	mcp_client_free(&stdio.client);
	mcp_server_free(&stdio.server);
	flush(&stdio);
	release(&stdio);
	/* Others may have the same pipe or terminal. */
	fcntl(STDOUT_FILENO, F_SETFL, flags);
	return r;
}
