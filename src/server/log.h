/* SPDX-License-Identifier: Apache-2.0 */
/* log: who asked what, and who ran what: JSON lines. */
#ifndef EXECPY_SERVER_LOG_H
#define EXECPY_SERVER_LOG_H

#include "server/tenant.h"

#include "base/bytes.h"
#include "engine/execpy.h"

#include <stdbool.h>

struct logs {
	int access, audit; /* opened for appending; -1: none */
	bool failed;       /* a line could not be written: readiness says so */
	uint64_t lost;     /* lines that could not be written */
};

struct server;

/* One line of the audit log: what was run or checked, by whom, and what came of it. `kind`
 * is what asked for it, such as "run", "check", "session run" or "mcp execute_python". */
void audit_run(struct server *server, const struct tenant *tenant, const char *kind,
	       struct span code, const struct execpy_result *result);

#endif
