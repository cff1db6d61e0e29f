/* SPDX-License-Identifier: Apache-2.0 */
/* owned: whose sessions are whose.
 *
 * To all others a session is not there: they cannot tell it from one that never was. */
#include "server/rest/rest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct owned_session {
	TAILQ_ENTRY(owned_session) entry;
	struct tenant *tenant;
	char id[EXECPY_SESSION_ID_MAX];
};

static struct owned_session *find(struct rest *rest, const char *id)
{
	struct owned_session *session;

	TAILQ_FOREACH(session, &rest->sessions, entry)
	if (strcmp(session->id, id) == 0)
		break;
	return session;
}

bool owned_all(const struct rest *rest, const struct tenant *tenant)
{
	return tenant == &rest->server->tenants.everybody;
}

bool owned_by(struct rest *rest, const struct tenant *tenant, const char *id)
{
	const struct owned_session *session = find(rest, id);

	return session ? session->tenant == tenant : owned_all(rest, tenant);
}

size_t owned_ids(struct rest *rest, const struct tenant *tenant,
		 char (**ret_ids)[EXECPY_SESSION_ID_MAX])
{
	const struct owned_session *session;
	size_t count = 0;

	*ret_ids = calloc(tenant->sessions + 1, sizeof **ret_ids);
	TAILQ_FOREACH(session, &rest->sessions, entry)
	if (*ret_ids && session->tenant == tenant && count < tenant->sessions)
		snprintf((*ret_ids)[count++], sizeof **ret_ids, "%s", session->id);
	return count;
}

void owned_add(struct rest *rest, struct tenant *tenant, const char *id)
{
	struct owned_session *session = calloc(1, sizeof *session);

	/* Without it nobody has the session: it ends when it is not used. */
	if (!session)
		return;
	session->tenant = tenant;
	snprintf(session->id, sizeof session->id, "%s", id);
	TAILQ_INSERT_TAIL(&rest->sessions, session, entry);
	tenant->sessions++;
}

static void drop(struct rest *rest, struct owned_session *session)
{
	TAILQ_REMOVE(&rest->sessions, session, entry);
	session->tenant->sessions--;
	free(session);
}

void owned_drop(struct rest *rest, const char *id)
{
	struct owned_session *session = find(rest, id);

	if (session)
		drop(rest, session);
}

void owned_keep(struct rest *rest, char (*ids)[EXECPY_SESSION_ID_MAX], size_t id_count,
		const struct execpy_session_info *infos, size_t count)
{
	for (size_t i = 0; i < id_count; i++) {
		size_t at = 0;

		while (at < count && strcmp(infos[at].id, ids[i]) != 0)
			at++;
		if (at == count)
			owned_drop(rest, ids[i]);
	}
}

void owned_free(struct rest *rest)
{
	while (!TAILQ_EMPTY(&rest->sessions))
		drop(rest, TAILQ_FIRST(&rest->sessions));
}
