/* SPDX-License-Identifier: Apache-2.0 */
/* http_session: MCP sessions over HTTP, of the revisions that begin with `initialize`.
 *
 * All that such a session holds is that its client has said hello, and which of its
 * requests are not answered yet: so there may be many, one that nobody uses ends, and the
 * one that was not used for longest makes room. A client that is told that its session
 * is gone begins another, as the protocol wants it. */
#include "server/mcp/endpoint.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static bool is_stale(const struct mcp_http_session *session)
{
	return session->posts == 0 &&
	       now_us() - session->used_us > (int64_t)MCP_HTTP_IDLE_MS * 1000;
}

/* Those that nobody uses any more, and if there are too many, one more. */
static void make_room(struct mcp_tenant *owner)
{
	struct mcp_http_session *session, *next;

	for (session = TAILQ_FIRST(&owner->sessions); session; session = next) {
		next = TAILQ_NEXT(session, entry);
		if (is_stale(session) ||
		    (session->posts == 0 && owner->session_count >= MCP_HTTP_SESSIONS_MAX))
			mcp_http_session_end(session);
	}
}

struct mcp_http_session *mcp_http_session_new(struct mcp_tenant *owner)
{
	struct mcp_http_session *session;
	uint8_t random[(MCP_HTTP_ID_SIZE - 1) / 2];

	make_room(owner);
	if (owner->session_count >= MCP_HTTP_SESSIONS_MAX ||
	    getrandom(random, sizeof random, 0) != sizeof random)
		return NULL;
	session = calloc(1, sizeof *session);
	if (!session)
		return NULL;
	for (size_t i = 0; i < sizeof random; i++)
		snprintf(session->id + 2 * i, 3, "%02x", random[i]);
	session->owner = owner;
	session->used_us = now_us();
	mcp_client_init(&session->client, &owner->server, &mcp_http_transport, session);
	session->client.era = MCP_LEGACY;
	TAILQ_INSERT_TAIL(&owner->sessions, session, entry);
	owner->session_count++;
	return session;
}

struct mcp_http_session *mcp_http_session_find(struct mcp_tenant *owner, const char *id)
{
	struct mcp_http_session *session;

	TAILQ_FOREACH(session, &owner->sessions, entry)
	if (strcmp(session->id, id) == 0)
		break;
	if (session && is_stale(session)) {
		mcp_http_session_end(session);
		return NULL;
	}
	if (session) {
		session->used_us = now_us();
		TAILQ_REMOVE(&owner->sessions, session, entry);
		TAILQ_INSERT_TAIL(&owner->sessions, session, entry);
	}
	return session;
}

void mcp_http_session_end(struct mcp_http_session *session)
{
	struct mcp_http *http = session->owner->http;
	struct mcp_post *post, *next;

	mcp_client_free(&session->client);
	for (post = TAILQ_FIRST(&http->posts); post; post = next) {
		next = TAILQ_NEXT(post, entry);
		if (post->session != session)
			continue;
		mcp_post_end(post);
		post->session = NULL;
	}
	TAILQ_FOREACH(post, &http->over, entry)
	if (post->session == session)
		post->session = NULL;
	TAILQ_REMOVE(&session->owner->sessions, session, entry);
	session->owner->session_count--;
	free(session);
}
