/* SPDX-License-Identifier: Apache-2.0 */
/* tenant: who asks, and what it may have. */
#ifndef EXECPY_SERVER_TENANT_H
#define EXECPY_SERVER_TENANT_H

#include "engine/execpy.h"

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tenant {
	char name[64];
	struct execpy_limits ceilings; /* of a run; 0: none but the table's */
	char **policies; /* that it may name, NULL-terminated; NULL: all that are built in */
	unsigned runs_max, sessions_max; /* at once; 0: as many as the daemon has */
	unsigned rate;                   /* requests a minute; 0: any */
	unsigned runs, sessions;         /* now */
	unsigned archives;               /* that are made, or sent */
	uint64_t body_bytes;             /* of its requests that are kept (http/bodies.c) */
	unsigned sessions_coming;        /* for which room was taken */
	unsigned sessions_recount;       /* when so many are counted: some may have ended */
};

/* Counts a run; false when it has as many as it may. tenant_end_run() is due then. */
bool tenant_begin_run(struct tenant *tenant);
void tenant_end_run(struct tenant *tenant);

/* Room for sessions that are asked for and are not there yet. All zero: none. */
struct session_room {
	struct tenant *tenant;
	unsigned count;
};

/* False when it would have more sessions than it may. The room is the caller's then, to be
 * left when they are there (owned_add() counts them) or will not come to be. */
bool tenant_take_room(struct tenant *tenant, unsigned count, struct session_room *ret_room);
void tenant_leave_room(struct session_room *room);
/* Leaves the room of one session, by the tenant that has it. */
void tenant_leave_one(void *tenant);

/* All of them: those of the keys, or without keys the one who may do everything. A tenant
 * that was named once stays where it is, also when its key is taken away: what it has
 * under way goes on. */
struct tenants {
	struct keyed *first; /* keys.c */
	struct retired *retired;
	size_t count;
	struct tenant everybody;
	bool has_keys;
};

#endif
