/* SPDX-License-Identifier: Apache-2.0 */
/* admit: whose a request is, and whether it may come from where it comes. */
#include "server/server.h"

unsigned server_admit_origin(struct server *server, struct exchange *exchange, const char **why)
{
	return 0;
}

unsigned server_admit_tenant(struct server *server, struct exchange *exchange, bool open,
			     struct tenant **ret_tenant, const char **why)
{
	*ret_tenant = &server->tenants.everybody;
	return 0;
}
