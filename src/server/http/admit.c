/* SPDX-License-Identifier: Apache-2.0 */
/* admit: what is looked at before a request's body is read: whose it is, where it goes,
 * whether it may. */
#include "server/http/connection.h"
#include "server/server.h"

#include "base/cleanup.h"

#include <event2/buffer.h>
#include <string.h>
#include <sys/mman.h>

static bool has_body(const struct request *request)
{
	return request->chunked || request->length > 0;
}

/* Answers instead of the handler. A body that would still come ends the connection. */
static bool deny(struct exchange *exchange, unsigned status, const char *why)
{
	exchange->close = has_body(&exchange->request);
	exchange_problem(exchange, status, "%s", why);
	return false;
}

static bool find_route(struct exchange *exchange)
{
	autobytes allowed = {0};
	unsigned status = 404;

	exchange->route = route_find(exchange, &status, &allowed);
	if (exchange->route)
		return true;
	if (status == 405) {
		bytes_append(&allowed, "", 1);
		if (!allowed.failed)
			exchange_field(exchange, "Allow", "%s", (const char *)allowed.data);
	}
	return deny(exchange, status,
		    status == 404   ? "there is nothing at this path"
		    : status == 405 ? "this path does not take that method"
				    : "out of memory");
}

static bool make_room(struct exchange *exchange)
{
	const struct request *request = &exchange->request;
	const struct route *route = exchange->route;

	if (route->body == ROUTE_NO_BODY) {
		if (has_body(request))
			return deny(exchange, 400, "this path takes no body");
		return true;
	}
	if (request->length > route->body_bytes_max)
		return deny(exchange, 413, "the body is too large");
	exchange->body.ceiling = route->body_bytes_max + 1;
	if (route->body == ROUTE_FILE) {
		exchange->body_file = memfd_create("body", MFD_CLOEXEC);
		if (exchange->body_file < 0)
			return deny(exchange, 503, "the body cannot be kept");
	}
	return true;
}

bool exchange_admit(struct exchange *exchange)
{
	struct connection *connection = exchange->connection;
	struct server *server = connection->http->server;
	static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
	const char *why = "";
	unsigned status = server_admit_origin(server, exchange, &why);

	if (status) {
		exchange_refuse(exchange, status, why);
		return false;
	}
	if (!find_route(exchange))
		return false;
	status = server_admit_tenant(server, exchange, exchange->route->open, &exchange->tenant,
				     &why);
	if (status)
		return deny(exchange, status, why);
	if (!make_room(exchange))
		return false;
	if (exchange->request.expects_continue && has_body(&exchange->request) &&
	    evbuffer_get_length(bufferevent_get_input(connection->buffers)) == 0)
		evbuffer_add(connection_output(connection), interim, sizeof interim - 1);
	return true;
}
