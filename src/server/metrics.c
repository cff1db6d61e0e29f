/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: see metrics.h. */
#include "server/metrics.h"

#include "engine/engine.h"

/* Upper bounds of the histogram, in microseconds. */
static const uint64_t bounds_us[METRICS_BUCKETS] = {500,     1000,    2500,     5000,    10000,
						    25000,   50000,   100000,   250000,  1000000,
						    2500000, 5000000, 10000000, 60000000};

void metrics_count_run(struct metrics *metrics, const struct execpy_result *result)
{
	size_t at = 0;

	metrics->runs[result->status]++;
	while (at < METRICS_BUCKETS && result->total_us > bounds_us[at])
		at++;
	metrics->buckets[at]++;
	metrics->run_count++;
	metrics->run_us += result->total_us;
	result->warm ? metrics->warm++ : metrics->cold++;
	metrics->anomalies += result->status == EXECPY_ANOMALY;
	switch (result->status) {
	case EXECPY_TIMEOUT:
	case EXECPY_CPU_LIMIT:
	case EXECPY_MEMORY_LIMIT:
	case EXECPY_OUTPUT_LIMIT:
	case EXECPY_DISK_LIMIT:
	case EXECPY_ANOMALY:
	case EXECPY_CANCELLED:
		metrics->kills++;
		break;
	default:
		break;
	}
}

void metrics_count_check(struct metrics *metrics, const struct execpy_result *result)
{
	metrics->checks[result->status == EXECPY_BLOCKED]++;
}
