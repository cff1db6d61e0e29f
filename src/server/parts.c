/* SPDX-License-Identifier: Apache-2.0 */
/* parts: everything that the server answers. */
#include "server/server.h"

#include <string.h>

extern const struct server_part health_part, page_part, rest_part, mcp_part, e2b_part, piston_part,
	fusion_part;

const struct server_part *const server_parts[] = {
	&health_part, &page_part,   &rest_part,   &mcp_part,
	&e2b_part,    &piston_part, &fusion_part, NULL,
};

bool server_part_is_on(const struct server *server, const struct server_part *part)
{
	if (!part->compat)
		return true;
	for (char **name = server->compat; name && *name; name++)
		if (strcmp(*name, part->compat) == 0)
			return true;
	return false;
}
