/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: tries to break each layer of the jail on this host.
 *
 * What `execpy doctor` prints, and what a server asks before it serves: every
 * layer that must hold is tried from inside a cell, and every limit is
 * reached. */
#ifndef EXECPY_ENGINE_DOCTOR_H
#define EXECPY_ENGINE_DOCTOR_H

#include "base/bytes.h"
#include "base/error.h"
#include "engine/execpy.h"

#define DOCTOR_ROWS_MAX 80

enum doctor_state {
	DOCTOR_HOLDS,
	DOCTOR_MISSING,     /* the layer gave way, or could not be tried */
	DOCTOR_INFORMATION, /* good to know; never a reason to refuse */
};

struct doctor_row {
	enum doctor_state state;
	const char *layer, *asked;
	char got[120];    /* one line, without control characters */
	char proof[240];  /* what was done to find out */
	char remedy[280]; /* what to do about it; empty when nothing is missing */
};

struct doctor {
	struct doctor_row rows[DOCTOR_ROWS_MAX];
	size_t count, missing;
};

/* Examines the host: starts an engine with `options` (may be NULL), runs a
 * probe in cells, and ends it. Takes some seconds. Prints nothing; sets a
 * variable in the caller's environment meanwhile, so no other thread may run.
 * Returns 0 with a report that the caller frees with free(), also when no cell
 * can be started at all; a negative errno only for what has nothing to do with
 * the jail, such as no memory. */
int doctor_examine(const struct execpy_options *options, struct doctor **ret_doctor,
		   struct error *err);

/* What must hold before strangers are served, in well under a second: a cell
 * starts, each layer holds, memory, processes and disk are limited. Not asked:
 * how limits are enforced, clocks, modules. 0, or -EPERM with the layer, what
 * was got and the remedy. Otherwise as doctor_examine(). */
int doctor_self_test(const struct execpy_options *options, struct error *err);

const char *doctor_state_name(enum doctor_state state); /* "ok", "missing", "info" */

/* The report as one JSON object. 0 or a negative errno. */
int doctor_json(const struct doctor *doctor, struct bytes *out);

#endif
