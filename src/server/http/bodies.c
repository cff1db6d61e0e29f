/* SPDX-License-Identifier: Apache-2.0 */
/* bodies: counts what is kept of requests' bodies, for the server and for each tenant.
 *
 * All bodies share one bound, `bodies` of the configuration. Without a bound of its own one
 * tenant could fill it with bodies that never end, and all others would be refused. What
 * outlives its request, as a detached run does, takes its count with it. */
#include "server/http/connection.h"
#include "server/server.h"

static uint64_t most_of(const struct server *server, const struct tenant *tenant)
{
	uint64_t most = server->numbers.bodies_bytes;

	return tenant && tenant != &server->tenants.everybody ? most / HTTP_BODIES_TENANTS : most;
}

unsigned exchange_hold(struct exchange *exchange, uint64_t bytes, const char **why)
{
	struct http *http = exchange->connection->http;
	struct held_body *held = &exchange->held;
	uint64_t most = most_of(http->server, exchange->tenant);

	held->http = http;
	held->tenant = exchange->tenant;
	held->bytes += bytes;
	http->body_bytes += bytes;
	if (held->tenant)
		held->tenant->body_bytes += bytes;
	if (held->bytes > most) {
		*why = "the body is larger than all that may be kept for one client";
		return 413;
	}
	if (http->body_bytes > http->server->numbers.bodies_bytes) {
		*why = "too much is being sent by all clients together";
		return 503;
	}
	if (held->tenant && held->tenant->body_bytes > most) {
		*why = "your requests that are under way have too much in their bodies together";
		return 429;
	}
	return 0;
}

struct held_body exchange_take_held(struct exchange *exchange)
{
	struct held_body held = exchange->held;

	exchange->held = (struct held_body){0};
	return held;
}

void held_body_drop(struct held_body *held)
{
	if (held->http)
		held->http->body_bytes -= held->bytes;
	if (held->tenant)
		held->tenant->body_bytes -= held->bytes;
	*held = (struct held_body){0};
}
