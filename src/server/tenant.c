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
