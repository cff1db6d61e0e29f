/* SPDX-License-Identifier: Apache-2.0 */
/* http: /mcp, MCP over Streamable HTTP.
 *
 * Theory of operation. Each POST brings one message. One of the stateless revision stands
 * alone: it has a client of its own, which ends with its response. One of an earlier
 * revision belongs to an MCP session, which `initialize` opens; its id is a secret between
 * us and that client, and it is good for the tenant only whose key opened it. What Python
 * has, sessions and their files, belongs to the tenant in both cases, so it does not
 * matter which era a client is of, or how often it says hello.
 *
 * Nothing is ever sent that is not about a request, so there is no stream to GET. */
#include "server/mcp/endpoint.h"
#include "server/mcp/headers.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- tenants -------------------------------------------------------------------------- */

_Static_assert(sizeof(struct limits) == sizeof(struct execpy_limits), "fields as in the table");

/* They may have changed since: keys and ceilings are read again while the server runs. */
static void choose_options(struct mcp_tenant *mine)
{
	const struct tenant *tenant = mine->tenant;
	struct mcp_options *options = &mine->options;
	bool strict = !tenant->policies;
	struct limits ceilings; /* 0 where there is none */

	memcpy(&ceilings, &tenant->ceilings, sizeof ceilings);
	options->limits = limits_default();
	options->ceilings = mcp_ceilings();
	for (size_t i = 0; i < limit_count; i++) {
		uint64_t most = limit_get(&ceilings, &limit_infos[i]);
		uint64_t *usual = limit_at(&options->limits, &limit_infos[i]);

		if (most == 0)
			continue;
		*limit_at(&options->ceilings, &limit_infos[i]) = most;
		if (*usual > most)
			*usual = most;
	}
	for (char **name = tenant->policies; name && *name; name++)
		strict |= strcmp(*name, "strict") == 0;
	/* The default, if it is allowed. */
	options->policy = strict || !tenant->policies[0] ? NULL : mine->policy;
	if (!strict && tenant->policies[0])
		snprintf(mine->policy, sizeof mine->policy, "%s", tenant->policies[0]);
}

static void record(const struct mcp_call *call, const struct execpy_result *result)
{
	const struct mcp_tenant *mine = call->server->user;
	const struct span code = {(const uint8_t *)call->ask.request.code,
				  call->ask.request.code_length};
	struct server *server = mine->http->server;

	if (call->check_only)
		metrics_count_check(&server->metrics, result);
	else
		metrics_count_run(&server->metrics, result);
	audit_run(server, mine->tenant, call->ran_as, code, result);
}

static struct mcp_tenant *find_tenant(struct mcp_http *http, struct tenant *tenant)
{
	struct mcp_tenant *mine;

	TAILQ_FOREACH(mine, &http->tenants, entry)
	if (mine->tenant == tenant)
		break;
	if (!mine) {
		mine = calloc(1, sizeof *mine);
		if (!mine)
			return NULL;
		mine->http = http;
		mine->tenant = tenant;
		TAILQ_INIT(&mine->sessions);
		mcp_server_init(&mine->server, http->server->engine, http->offer, &mine->options);
		mine->server.tenant = tenant;
		mine->server.http = http->server;
		mine->server.ran = record;
		mine->server.user = mine;
		TAILQ_INSERT_TAIL(&http->tenants, mine, entry);
	}
	choose_options(mine);
	return mine;
}

static void free_tenant(struct mcp_tenant *mine)
{
	TAILQ_REMOVE(&mine->http->tenants, mine, entry);
	while (!TAILQ_EMPTY(&mine->sessions))
		mcp_http_session_end(TAILQ_FIRST(&mine->sessions));
	mcp_server_free(&mine->server);
	free(mine);
}

/* --- messages ------------------------------------------------------------------------- */

/* The MCP session that a message of an earlier revision belongs to. NULL: it was refused. */
static struct mcp_http_session *find_session(struct mcp_post *post, const char *id,
					     const struct mcp_message *message)
{
	struct mcp_http_session *session;

	if (id) {
		session = mcp_http_session_find(post->owner, id);
		if (!session)
			mcp_post_problem(post, 404, "there is no such MCP session");
		return session;
	}
	if (message->form != MCP_REQUEST || strcmp(message->method, "initialize") != 0) {
		mcp_refuse(&post->alone, post, message->id, MCP_INVALID_REQUEST,
			   "begin with initialize and send the Mcp-Session-Id of its response, or "
			   "name the protocol version in MCP-Protocol-Version and "
			   "params._meta[\"" MCP_META_REVISION "\"]");
		return NULL;
	}
	session = mcp_http_session_new(post->owner);
	if (!session) {
		mcp_post_problem(post, 503, "there are too many MCP sessions");
		return NULL;
	}
	session->is_new = true;
	return session;
}

static void handle_legacy(struct mcp_post *post, struct mcp_message *message, const char *id)
{
	struct mcp_http_session *session = find_session(post, id, message);

	if (!session) {
		json_decref(message->object);
		return;
	}
	session->posts++;
	post->session = session;
	mcp_handle(&session->client, message, post);
	if (session->is_new && !session->client.initialized)
		mcp_http_session_end(session);
	else
		session->is_new = false;
}

static void handle(struct mcp_post *post, const struct mcp_headers *headers,
		   struct mcp_message *message)
{
	enum mcp_form form = message->form;
	struct error why = {0};
	enum mcp_era era;
	int code = mcp_judge_headers(headers, message, &era, &why);

	if (code < 0) {
		mcp_refuse(&post->alone, post, message->id, code, "%s", why.text);
		json_decref(message->object);
		return;
	}
	if (era == MCP_LEGACY) {
		handle_legacy(post, message, headers->session);
	} else {
		post->alone.era = MCP_STATELESS;
		mcp_handle(&post->alone, message, post);
	}
	if (form == MCP_NOTIFICATION && !post->over)
		mcp_post_accept(post);
}

static void on_post(struct exchange *exchange)
{
	const struct mcp_headers headers = {
		.revision = exchange_header(exchange, "mcp-protocol-version"),
		.method = exchange_header(exchange, "mcp-method"),
		.name = exchange_header(exchange, "mcp-name"),
		.session = exchange_header(exchange, "mcp-session-id"),
	};
	struct server *server = exchange_server(exchange);
	struct mcp_message message;
	struct mcp_tenant *tenant;
	struct mcp_post *post;

	if (server_refuses(server, exchange))
		return;
	if (!mcp_is_json(exchange_header(exchange, "content-type"))) {
		exchange_problem(exchange, 415, "a message is application/json");
		return;
	}
	tenant = find_tenant(server->mcp, exchange_tenant(exchange));
	post = tenant ? mcp_post_new(tenant, exchange) : NULL;
	if (!post) {
		exchange_problem(exchange, 503, "out of memory");
		return;
	}
	if (!post->takes_json && !post->takes_stream) {
		mcp_post_problem(post, 406, "accept application/json or text/event-stream");
		return;
	}
	switch (mcp_read(&post->alone, exchange_body(exchange), post, &message)) {
	case MCP_REQUEST:
	case MCP_NOTIFICATION:
		handle(post, &headers, &message);
		break;
	case MCP_ANSWER: /* to what nobody asked */
		mcp_post_accept(post);
		break;
	case MCP_WRONG:
		if (!post->over)
			mcp_post_problem(post, 400, "params must be an object");
	}
}

static void on_delete(struct exchange *exchange)
{
	const char *id = exchange_header(exchange, "mcp-session-id");
	struct server *server = exchange_server(exchange);
	struct mcp_tenant *tenant = find_tenant(server->mcp, exchange_tenant(exchange));
	struct mcp_http_session *session = tenant && id ? mcp_http_session_find(tenant, id) : NULL;

	if (!session) {
		exchange_problem(exchange, id ? 404 : 400,
				 id ? "there is no such MCP session" : "Mcp-Session-Id is missing");
		return;
	}
	mcp_http_session_end(session);
	exchange_respond(exchange, 204, NULL, &(struct bytes){0});
}

/* --- the part ------------------------------------------------------------------------- */

int mcp_http_begin(struct server *server, const struct mcp_offer *offer, struct error *err)
{
	struct mcp_http *http = calloc(1, sizeof *http);

	if (!http)
		return fail(err, ENOMEM, "mcp");
	http->server = server;
	http->offer = offer;
	TAILQ_INIT(&http->tenants);
	TAILQ_INIT(&http->posts);
	TAILQ_INIT(&http->over);
	server->mcp = http;
	return 0;
}

void mcp_http_turn(struct server *server)
{
	struct mcp_tenant *tenant;

	TAILQ_FOREACH(tenant, &server->mcp->tenants, entry)
	mcp_proceed(&tenant->server);
	mcp_posts_sweep(server->mcp);
}

void mcp_http_end(struct server *server)
{
	struct mcp_http *http = server->mcp;

	if (!http)
		return;
	while (!TAILQ_EMPTY(&http->posts))
		mcp_post_free(TAILQ_FIRST(&http->posts));
	mcp_posts_sweep(http);
	while (!TAILQ_EMPTY(&http->tenants))
		free_tenant(TAILQ_FIRST(&http->tenants));
	free(http);
	server->mcp = NULL;
}

const struct route mcp_http_routes[] = {
	{"POST", "/mcp", ROUTE_TEXT, MCP_LINE_BYTES_MAX, false, on_post},
	{"DELETE", "/mcp", ROUTE_NO_BODY, 0, false, on_delete},
	{NULL, NULL, ROUTE_NO_BODY, 0, false, NULL},
};

static int begin(struct server *server, struct error *err)
{
	return mcp_http_begin(server, &mcp_python_offer, err);
}

const struct server_part mcp_part = {
	.name = "mcp",
	.routes = mcp_http_routes,
	.begin = begin,
	.turn = mcp_http_turn,
	.end = mcp_http_end,
};
