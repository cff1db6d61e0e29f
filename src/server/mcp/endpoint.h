/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint: what the files of MCP over HTTP share: tenants, their MCP sessions, and the
 * requests that are not answered yet. */
#ifndef EXECPY_SERVER_MCP_ENDPOINT_H
#define EXECPY_SERVER_MCP_ENDPOINT_H

#include "server/mcp/protocol.h"
#include "server/server.h"

#define MCP_HTTP_ID_SIZE 33 /* 128 random bits in hexadecimal */

/* What one tenant has here. */
struct mcp_tenant {
	TAILQ_ENTRY(mcp_tenant) entry;
	struct mcp_http *http;
	struct tenant *tenant;
	struct mcp_options options; /* as the tenant's ceilings and policies are now */
	char policy[64];
	struct mcp_server server;
	TAILQ_HEAD(, mcp_http_session) sessions; /* the last used is the last */
	size_t session_count;
};

/* A session of a revision that begins with `initialize`: what this revision calls one; it
 * has nothing to do with sessions of Python. */
struct mcp_http_session {
	TAILQ_ENTRY(mcp_http_session) entry;
	struct mcp_tenant *owner;
	char id[MCP_HTTP_ID_SIZE];
	struct mcp_client client;
	int64_t used_us;
	size_t posts; /* that are not answered yet */
	bool is_new;  /* its id was not told yet */
};

/* A POST whose message is being handled. */
struct mcp_post {
	TAILQ_ENTRY(mcp_post) entry;
	struct mcp_tenant *owner;
	struct exchange *exchange;        /* NULL: answered, or the client is gone */
	struct held_body held;            /* of the message, when the client is gone */
	struct mcp_http_session *session; /* or NULL: the message stands alone */
	struct mcp_client alone;
	bool takes_stream, takes_json;
	bool streaming; /* the response has begun, as server-sent events */
	bool over;      /* to be freed between two turns of the loop */
	struct event *keep_alive;
};

struct mcp_http {
	struct server *server;
	const struct mcp_offer *offer;
	TAILQ_HEAD(, mcp_tenant) tenants;
	TAILQ_HEAD(, mcp_post) posts, over;
};

extern const struct mcp_transport mcp_http_transport; /* of clients whose carriers are posts */

/* http.c: a server's part that serves this offer. */
int mcp_http_begin(struct server *server, const struct mcp_offer *offer, struct error *err);
void mcp_http_turn(struct server *server);
void mcp_http_end(struct server *server);
extern const struct route mcp_http_routes[];

/* post.c */
struct mcp_post *mcp_post_new(struct mcp_tenant *owner, struct exchange *exchange);
/* The ways in which a response ends that is no answer; the post is freed soon. */
void mcp_post_end(struct mcp_post *post); /* nothing more will come */
void mcp_post_accept(struct mcp_post *post);
void mcp_post_problem(struct mcp_post *post, unsigned status, const char *text);
/* Frees those that are over. Not from inside the loop. */
void mcp_posts_sweep(struct mcp_http *http);
void mcp_post_free(struct mcp_post *post);

/* http_session.c */
/* NULL: no memory, or no randomness. */
struct mcp_http_session *mcp_http_session_new(struct mcp_tenant *owner);
/* The tenant's session of this id, which is used now; or NULL. */
struct mcp_http_session *mcp_http_session_find(struct mcp_tenant *owner, const char *id);
/* Ends it with all that goes on in it. */
void mcp_http_session_end(struct mcp_http_session *session);

#endif
