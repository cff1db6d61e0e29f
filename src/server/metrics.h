/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: what is counted, and told at /metrics. */
#ifndef EXECPY_SERVER_METRICS_H
#define EXECPY_SERVER_METRICS_H

#include "engine/execpy.h"

#include "base/bytes.h"

#include <stdint.h>

#define METRICS_BUCKETS  14
#define METRICS_STATUSES (EXECPY_INTERNAL_ERROR + 1)

struct metrics {
	uint64_t runs[METRICS_STATUSES]; /* by status */
	uint64_t checks[2];              /* allowed, blocked */
	uint64_t buckets[METRICS_BUCKETS + 1], run_count, run_us;
	uint64_t warm, cold, anomalies, kills;
	uint64_t responses[6]; /* by hundreds of the status; 0: the client left before */
};

struct daemon_report;
struct server;

/* A run that ended, or a check, whoever asked for it. */
void metrics_count_run(struct metrics *metrics, const struct execpy_result *result);
void metrics_count_check(struct metrics *metrics, const struct execpy_result *result);
/* All of it in the text format of Prometheus; the report is of the daemon, or NULL when it
 * does not tell. */
void metrics_write(const struct server *server, const struct daemon_report *report,
		   struct bytes *out);

#endif
