/* SPDX-License-Identifier: Apache-2.0 */
/* server: the loop, and who takes part in it. */
#include "server/server.h"

void server_wake(struct server *server)
{
	server->again = true;
}

bool server_refuses(struct server *server, struct exchange *exchange)
{
	if (!server->stopping)
		return false;
	exchange_field(exchange, "Retry-After", "1");
	exchange_problem(exchange, 503, "the server is ending");
	return true;
}
