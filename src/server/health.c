/* SPDX-License-Identifier: Apache-2.0 */
/* health: whether the server lives, whether it is of use, and its numbers. */
#include "server/server.h"

#include "engine/engine.h"
#include "engine/report.h"

#include <stdlib.h>

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

	/* Whoever comes next would find the daemon again, if it is there. */
	if (server->engine->dead)
		engine_revive(server->engine, &(struct error){0});
	if (server->stopping)
		answer_text(exchange, 503, "the server is ending\n");
	else if (server->engine->dead)
		answer_text(exchange, 503, "there is no daemon\n");
	else
		answer_text(exchange, 200, "ready\n");
}

/* --- numbers ---------------------------------------------------------------------- */

struct telling {
	struct exchange *exchange;
	struct reporting *reporting;
};

static void answer_metrics(struct exchange *exchange, const struct daemon_report *report)
{
	struct bytes body = {0};

	metrics_write(exchange_server(exchange), report, &body);
	exchange_field(exchange, "Cache-Control", "no-store");
	exchange_respond(exchange, 200, "text/plain; version=0.0.4; charset=utf-8", &body);
}

static void on_report(void *user, const struct daemon_report *report, const struct error *why)
{
	struct telling *telling = user;
	struct exchange *exchange = telling->exchange;

	free(telling);
	answer_metrics(exchange, report);
}

static void on_gone(void *user)
{
	struct telling *telling = user;

	report_abandon(telling->reporting);
	free(telling);
}

static void handle_metrics(struct exchange *exchange)
{
	struct telling *telling = calloc(1, sizeof *telling);
	struct exchange_watch watch = {.gone = on_gone, .user = telling};
	struct error err = {0};

	if (telling)
		telling->reporting =
			report_begin(exchange_server(exchange)->engine, on_report, telling, &err);
	if (!telling || !telling->reporting) {
		free(telling);
		answer_metrics(exchange, NULL);
		return;
	}
	telling->exchange = exchange;
	exchange_watch(exchange, &watch);
}

static const struct route routes[] = {
	{"GET", "/healthz", ROUTE_NO_BODY, 0, true, handle_health},
	{"GET", "/readyz", ROUTE_NO_BODY, 0, true, handle_ready},
	{"GET", "/metrics", ROUTE_NO_BODY, 0, false, handle_metrics},
	{0},
};

const struct server_part health_part = {.name = "health", .routes = routes};
