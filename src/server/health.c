/* SPDX-License-Identifier: Apache-2.0 */
/* health: whether the server lives, whether it is of use, and its numbers. */
#include "server/server.h"

static void answer_text(struct exchange *exchange, unsigned status, const char *text)
{
	struct bytes body = {0};

	bytes_append_text(&body, text);
	exchange_field(exchange, "Cache-Control", "no-store");
	exchange_respond(exchange, status, "text/plain; charset=utf-8", &body);
}

static void handle_health(struct exchange *exchange)
{
	answer_text(exchange, 200, "ok\n");
}

static void handle_ready(struct exchange *exchange)
{
	struct server *server = exchange_server(exchange);

	if (server->stopping)
		answer_text(exchange, 503, "the server is ending\n");
	else if (async_dead(server->engine))
		answer_text(exchange, 503, "there is no daemon\n");
	else
		answer_text(exchange, 200, "ready\n");
}

static const struct route routes[] = {
	{"GET", "/healthz", ROUTE_NO_BODY, 0, true, handle_health},
	{"GET", "/readyz", ROUTE_NO_BODY, 0, true, handle_ready},
	{0},
};

const struct server_part health_part = {.name = "health", .routes = routes};
