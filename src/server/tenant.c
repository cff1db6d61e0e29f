/* SPDX-License-Identifier: Apache-2.0 */
/* tenant: counts what a tenant has under way. */
#include "server/tenant.h"

bool tenant_begin_run(struct tenant *tenant)
{
	if (tenant->runs_max > 0 && tenant->runs >= tenant->runs_max)
		return false;
	tenant->runs++;
	return true;
}

void tenant_end_run(struct tenant *tenant)
{
	if (tenant->runs > 0)
		tenant->runs--;
}

bool tenant_take_room(struct tenant *tenant, unsigned count, struct session_room *ret_room)
{
	if (tenant->sessions_max > 0 &&
	    tenant->sessions + tenant->sessions_coming + count > tenant->sessions_max)
		return false;
	tenant->sessions_coming += count;
	*ret_room = (struct session_room){tenant, count};
	return true;
}

void tenant_leave_room(struct session_room *room)
{
	if (room->tenant)
		room->tenant->sessions_coming -= room->count;
	*room = (struct session_room){0};
}

void tenant_leave_one(void *tenant)
{
	((struct tenant *)tenant)->sessions_coming--;
}
