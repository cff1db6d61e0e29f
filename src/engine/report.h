/* SPDX-License-Identifier: Apache-2.0 */
/* report: how a daemon is, as its warden tells it. */
#ifndef EXECPY_ENGINE_REPORT_H
#define EXECPY_ENGINE_REPORT_H

#include "base/bounds.h"
#include "base/bytes.h"
#include "base/error.h"

#include <stdbool.h>

struct template_report {
	char name[TEMPLATE_NAME_BYTES_MAX + 1];
	uint64_t pool_min, pool_max, target; /* target: parked cells that it keeps now */
	uint64_t parked, running;
	uint64_t hits, misses; /* runs that found a parked cell, or had to wait for one */
	uint64_t parked_bytes; /* of all its parked cells */
	bool loaded;
	uint64_t template_bytes, cells, age_ms; /* while it is loaded */
	char why[ERROR_TEXT_MAX];               /* it is not loaded; may be empty */
};

struct daemon_report {
	char socket[108], cgroups[8];
	uint64_t process, up_ms; /* of the warden */
	uint64_t clients, sessions, running, waiting;
	uint64_t runs, misses, refused; /* so far */
	uint64_t memory_bytes, memory_bound_bytes;
	struct template_report templates[TEMPLATES_MAX];
	size_t template_count;
};

/* Asks the daemon at `socket`; NULL: where execpy_open() would look. -ENOENT or
 * -ECONNREFUSED when there is none. Texts of the report are printable. */
int report_ask(const char *socket, struct daemon_report *ret_report, struct error *err);

/* Asks the engine's warden, without waiting: `done` gets the report, or NULL and why not.
 * NULL when it cannot be asked; then `done` is not called. */
struct execpy_engine;
struct reporting;
struct reporting *report_begin(struct execpy_engine *engine,
			       void (*done)(void *user, const struct daemon_report *report,
					    const struct error *why),
			       void *user, struct error *err);
void report_abandon(struct reporting *reporting); /* `done` is not called; NULL-safe */

/* The report as one JSON object. 0 or a negative errno. */
int report_json(const struct daemon_report *report, struct bytes *out);

#endif
