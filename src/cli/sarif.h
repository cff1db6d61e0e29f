/* SPDX-License-Identifier: Apache-2.0 */
/* sarif: findings as a SARIF 2.1.0 log (OASIS), for code hosts and editors. */
#ifndef EXECPY_CLI_SARIF_H
#define EXECPY_CLI_SARIF_H

#include "base/bytes.h"
#include "engine/execpy.h"
#include "engine/json.h"

/* One log with one run, in which all inputs are. */
struct sarif {
	struct bytes results, notifications;
	struct json result_list, notification_list; /* the writers of the two */
};

void sarif_begin(struct sarif *sarif);
void sarif_add(struct sarif *sarif, const char *path, const struct execpy_finding *finding);
/* An input that could not be judged, and why. */
void sarif_add_failure(struct sarif *sarif, const char *path, const char *why);
/* Writes the log, one line with its newline. */
void sarif_end(struct sarif *sarif, struct bytes *out);
void sarif_free(struct sarif *sarif);

#endif
