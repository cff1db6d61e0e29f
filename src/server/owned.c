/* SPDX-License-Identifier: Apache-2.0 */
/* owned: whose sessions are whose.
 *
 * To all others a session is not there: they cannot tell it from one that never was. */
#include "server/owned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	RECOUNT_AT = 64, /* and whenever there are twice as many and so many more */
};

struct owned_session {
	struct owned_session *next; /* opened later */
	struct tenant *tenant;
	char id[EXECPY_SESSION_ID_MAX];
};

/* Where the session of this id hangs, or the next would: *place is NULL then. */
static struct owned_session **find(struct server *server, const char *id)
{
	struct owned_session **place = &server->sessions;

	while (*place && strcmp((*place)->id, id) != 0)
		place = &(*place)->next;
	return place;
}

bool owned_all(const struct server *server, const struct tenant *tenant)
{
	return tenant == &server->tenants.everybody;
}

bool owned_by(struct server *server, const struct tenant *tenant, const char *id)
{
	const struct owned_session *session = *find(server, id);

	return session ? session->tenant == tenant : owned_all(server, tenant);
}

size_t owned_ids(struct server *server, const struct tenant *tenant,
		 char (**ret_ids)[EXECPY_SESSION_ID_MAX])
{
	const struct owned_session *session = server->sessions;
	size_t count = 0;

	*ret_ids = calloc(tenant->sessions + 1, sizeof **ret_ids);
	for (; *ret_ids && session; session = session->next)
		if (session->tenant == tenant && count < tenant->sessions)
			snprintf((*ret_ids)[count++], sizeof **ret_ids, "%s", session->id);
	return count;
}

void owned_add(struct server *server, struct tenant *tenant, const char *id)
{
	struct owned_session *session = calloc(1, sizeof *session);

	/* Without it nobody has the session: it ends when it is not used. */
	if (!session)
		return;
	session->tenant = tenant;
	snprintf(session->id, sizeof session->id, "%s", id);
	*find(server, id) = session;
	tenant->sessions++;
}

void owned_drop(struct server *server, const char *id)
{
	struct owned_session **place = find(server, id), *session = *place;

	if (!session)
		return;
	*place = session->next;
	session->tenant->sessions--;
	free(session);
}

bool owned_should_count(const struct tenant *tenant, unsigned more)
{
	unsigned recount = tenant->sessions_recount ? tenant->sessions_recount : RECOUNT_AT;

	return (tenant->sessions_max > 0 && tenant->sessions + more > tenant->sessions_max) ||
	       tenant->sessions >= recount;
}

void owned_keep(struct server *server, struct tenant *tenant, char (*ids)[EXECPY_SESSION_ID_MAX],
		size_t id_count, const struct execpy_session_info *infos, size_t count)
{
	for (size_t i = 0; i < id_count; i++) {
		size_t at = 0;

		while (at < count && strcmp(infos[at].id, ids[i]) != 0)
			at++;
		if (at == count)
			owned_drop(server, ids[i]);
	}
	tenant->sessions_recount = 2 * tenant->sessions + RECOUNT_AT;
}

void owned_abandon(struct asking *asking, struct session_room *room)
{
	struct tenant *tenant = room->tenant;

	async_abandon_asking(asking, tenant ? tenant_leave_one : NULL, tenant);
	if (asking)
		*room = (struct session_room){0};
	tenant_leave_room(room);
}

void owned_end(struct execpy_engine *engine, const char *id, struct session_room *room)
{
	struct tenant *tenant = room->count > 0 ? room->tenant : NULL;

	if (tenant)
		room->count--;
	async_end_session(engine, id, tenant ? tenant_leave_one : NULL, tenant);
}

void owned_free(struct server *server)
{
	while (server->sessions)
		owned_drop(server, server->sessions->id);
}
