/* SPDX-License-Identifier: Apache-2.0 */
/* owned: whose sessions are whose, however they were opened. */
#ifndef EXECPY_SERVER_OWNED_H
#define EXECPY_SERVER_OWNED_H

#include "server/server.h"

#include "engine/async.h"

bool owned_by(struct server *server, const struct tenant *tenant, const char *id);
/* All of a tenant: how many; the ids are the caller's. */
size_t owned_ids(struct server *server, const struct tenant *tenant,
		 char (**ret_ids)[EXECPY_SESSION_ID_MAX]);
void owned_add(struct server *server, struct tenant *tenant, const char *id);
void owned_drop(struct server *server, const char *id);
/* Drops those of these ids of a tenant that are not among the living. */
void owned_keep(struct server *server, struct tenant *tenant, char (*ids)[EXECPY_SESSION_ID_MAX],
		size_t id_count, const struct execpy_session_info *infos, size_t count);
/* Whether to ask first which of them live, before the tenant gets so many more: some that
 * are counted may have ended by themselves. owned_keep() is due when that was done. */
bool owned_should_count(const struct tenant *tenant, unsigned more);
/* Nobody waits any more for what was asked for, which is for as many sessions as there is
 * room for, if for any. Those come to be all the same, and until they have ended their
 * room is taken: a tenant that gives up and asks anew has no more than it may. NULL-safe. */
void owned_abandon(struct asking *asking, struct session_room *room);
/* The same for a session that is there and that nobody was told of. */
void owned_end(struct execpy_engine *engine, const char *id, struct session_room *room);
void owned_free(struct server *server);
/* Without keys there is one tenant, and all of the daemon's sessions are its. */
bool owned_all(const struct server *server, const struct tenant *tenant);

#endif
