/* SPDX-License-Identifier: Apache-2.0 */
/* post: one message over HTTP, and its response.
 *
 * A request is answered with one JSON object, unless there is something to say before: a
 * notification, or after a while just that it goes on. Then the response becomes a stream
 * of server-sent events, of which the answer is the last, if the client takes those.
 *
 * A client that goes away cancels its request in the stateless revision. In the others it
 * does not, as they want it: the run ends, and nobody hears of it. */
#include "server/mcp/endpoint.h"
#include "server/mcp/headers.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

/* --- the response --------------------------------------------------------------------- */

/* A new session's id goes with the answer that opens it. */
static void name_session(struct mcp_post *post)
{
	if (post->session && post->session->is_new)
		exchange_field(post->exchange, "Mcp-Session-Id", "%s", post->session->id);
}

static void begin_stream(struct mcp_post *post)
{
	if (post->streaming)
		return;
	post->streaming = true;
	name_session(post);
	exchange_field(post->exchange, "Cache-Control", "no-store");
	exchange_field(post->exchange, "X-Accel-Buffering", "no");
	exchange_begin(post->exchange, 200, "text/event-stream", -1);
}

static void write_text(struct mcp_post *post, const char *text)
{
	exchange_write(post->exchange, (struct span){(const uint8_t *)text, strlen(text)});
}

/* A message is one line of JSON with its newline. */
static void write_event(struct mcp_post *post, const struct bytes *message)
{
	write_text(post, "event: message\ndata: ");
	exchange_write(post->exchange, bytes_span(message));
	write_text(post, "\n");
}

static void on_keep_alive(evutil_socket_t fd, short what, void *argument)
{
	struct mcp_post *post = argument;

	begin_stream(post);
	if (exchange_unsent(post->exchange) < EXCHANGE_HIGH_BYTES)
		write_text(post, ":\n\n");
}

static unsigned status_of(const struct mcp_post *post, enum mcp_kind kind)
{
	if (kind == MCP_REFUSAL)
		return 400;
	return kind == MCP_NO_SUCH_METHOD && !post->session ? 404 : 200;
}

/* It is to be freed between two turns of the loop. */
static void set_over(struct mcp_post *post)
{
	struct mcp_http *http = post->owner->http;

	if (post->over)
		return;
	post->over = true;
	post->exchange = NULL;
	if (post->keep_alive)
		event_del(post->keep_alive);
	TAILQ_REMOVE(&http->posts, post, entry);
	TAILQ_INSERT_TAIL(&http->over, post, entry);
	server_wake(http->server);
}

static void answer(struct mcp_post *post, enum mcp_kind kind, struct bytes *message)
{
	struct exchange *exchange = post->exchange;

	if (!post->streaming && post->takes_json) {
		if (kind == MCP_RESULT)
			name_session(post);
		set_over(post);
		exchange_respond(exchange, status_of(post, kind), "application/json", message);
		return;
	}
	begin_stream(post);
	write_event(post, message);
	set_over(post);
	exchange_end(exchange);
}

static void send_message(void *user, void *carrier, enum mcp_kind kind, struct bytes *message)
{
	struct mcp_post *post = carrier;

	if (post->exchange && kind != MCP_NOTICE) {
		answer(post, kind, message);
	} else if (!post->exchange && kind != MCP_NOTICE) {
		set_over(post);
	} else if (post->exchange && post->takes_stream) {
		begin_stream(post);
		/* Who does not read learns less of how it goes. */
		if (exchange_unsent(post->exchange) < EXCHANGE_HIGH_BYTES)
			write_event(post, message);
	}
	bytes_free(message);
}

void mcp_post_problem(struct mcp_post *post, unsigned status, const char *text)
{
	struct exchange *exchange = post->exchange;

	set_over(post);
	if (exchange)
		exchange_problem(exchange, status, "%s", text);
}

void mcp_post_accept(struct mcp_post *post)
{
	struct exchange *exchange = post->exchange;

	set_over(post);
	if (exchange)
		exchange_respond(exchange, 202, NULL, &(struct bytes){0});
}

void mcp_post_end(struct mcp_post *post)
{
	struct exchange *exchange = post->exchange;

	if (!post->streaming && !post->takes_stream) {
		mcp_post_problem(post, 409, "the request was cancelled");
		return;
	}
	if (exchange)
		begin_stream(post);
	set_over(post);
	if (exchange)
		exchange_end(exchange);
}

static void dropped(void *user, void *carrier)
{
	mcp_post_end(carrier);
}

const struct mcp_transport mcp_http_transport = {.send = send_message, .dropped = dropped};

/* --- its life ------------------------------------------------------------------------- */

static void on_gone(void *user)
{
	struct mcp_post *post = user;

	post->held = exchange_take_held(post->exchange);
	post->exchange = NULL;
	if (post->keep_alive)
		event_del(post->keep_alive);
	if (!post->session)
		set_over(post); /* the sweep ends what goes on */
}

struct mcp_post *mcp_post_new(struct mcp_tenant *owner, struct exchange *exchange)
{
	const struct timeval pause = {MCP_KEEP_ALIVE_MS / 1000, MCP_KEEP_ALIVE_MS % 1000 * 1000};
	struct mcp_post *post = calloc(1, sizeof *post);

	if (!post)
		return NULL;
	post->owner = owner;
	post->exchange = exchange;
	post->takes_stream =
		mcp_accepts(exchange_header(exchange, "accept"), "text", "event-stream");
	post->takes_json = mcp_accepts(exchange_header(exchange, "accept"), "application", "json");
	mcp_client_init(&post->alone, &owner->server, &mcp_http_transport, post);
	TAILQ_INSERT_TAIL(&owner->http->posts, post, entry);
	exchange_watch(exchange, &(struct exchange_watch){.gone = on_gone, .user = post});
	if (!post->takes_stream)
		return post;
	/* Without it a machine on the way may lose patience. */
	post->keep_alive =
		event_new(owner->http->server->base, -1, EV_PERSIST, on_keep_alive, post);
	if (post->keep_alive)
		event_add(post->keep_alive, &pause);
	return post;
}

void mcp_post_free(struct mcp_post *post)
{
	struct mcp_http *http = post->owner->http;

	if (post->over)
		TAILQ_REMOVE(&http->over, post, entry);
	else
		TAILQ_REMOVE(&http->posts, post, entry);
	if (post->session)
		post->session->posts--;
	mcp_client_free(&post->alone);
	held_body_drop(&post->held);
	if (post->keep_alive)
		event_free(post->keep_alive);
	free(post);
}

void mcp_posts_sweep(struct mcp_http *http)
{
	while (!TAILQ_EMPTY(&http->over))
		mcp_post_free(TAILQ_FIRST(&http->over));
}
