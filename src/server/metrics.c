/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: see metrics.h. */
#include "server/metrics.h"

#include "server/server.h"

#include "base/cleanup.h"
#include "engine/engine.h"
#include "engine/report.h"

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
	/* One that was cut short found neither. */
	if (result->has_verdict)
		metrics->checks[result->status == EXECPY_BLOCKED]++;
}

/* --- as text ---------------------------------------------------------------------- */

#define NUMBER(value) ((unsigned long long)(value))

static void begin(struct bytes *out, const char *name, const char *type, const char *help)
{
	bytes_append_format(out, "# HELP execpy_%s %s\n# TYPE execpy_%s %s\n", name, help, name,
			    type);
}

static void write_one(struct bytes *out, const char *name, const char *type, const char *help,
		      uint64_t value)
{
	begin(out, name, type, help);
	bytes_append_format(out, "execpy_%s %llu\n", name, NUMBER(value));
}

static void write_runs(const struct metrics *metrics, struct bytes *out)
{
	uint64_t below = 0;

	begin(out, "runs_total", "counter", "Runs that ended, by the status of their result.");
	for (size_t i = 0; i < METRICS_STATUSES; i++)
		bytes_append_format(out, "execpy_runs_total{status=\"%s\"} %llu\n",
				    execpy_status_name((enum execpy_status)i),
				    NUMBER(metrics->runs[i]));
	begin(out, "checks_total", "counter", "Codes that were only checked, by the decision.");
	bytes_append_format(out, "execpy_checks_total{decision=\"allow\"} %llu\n",
			    NUMBER(metrics->checks[0]));
	bytes_append_format(out, "execpy_checks_total{decision=\"block\"} %llu\n",
			    NUMBER(metrics->checks[1]));
	begin(out, "run_duration_seconds", "histogram",
	      "From a request to the end of its run, waiting included.");
	for (size_t i = 0; i < METRICS_BUCKETS; i++) {
		below += metrics->buckets[i];
		bytes_append_format(out, "execpy_run_duration_seconds_bucket{le=\"%g\"} %llu\n",
				    (double)bounds_us[i] / 1e6, NUMBER(below));
	}
	bytes_append_format(out,
			    "execpy_run_duration_seconds_bucket{le=\"+Inf\"} %llu\n"
			    "execpy_run_duration_seconds_sum %.6f\n"
			    "execpy_run_duration_seconds_count %llu\n",
			    NUMBER(metrics->run_count), (double)metrics->run_us / 1e6,
			    NUMBER(metrics->run_count));
	begin(out, "run_cells_total", "counter",
	      "Runs that found a parked cell, and that did not.");
	bytes_append_format(out, "execpy_run_cells_total{warm=\"true\"} %llu\n",
			    NUMBER(metrics->warm));
	bytes_append_format(out, "execpy_run_cells_total{warm=\"false\"} %llu\n",
			    NUMBER(metrics->cold));
	write_one(out, "anomalies_total", "counter", "Runs ended for what they did.",
		  metrics->anomalies);
	write_one(out, "kills_total", "counter",
		  "Runs that were killed: limits, anomalies, cancels.", metrics->kills);
}

static void write_http(const struct server *server, struct bytes *out)
{
	static const char *const classes[] = {"none", "1xx", "2xx", "3xx", "4xx", "5xx"};
	const struct http *http = &server->http;

	begin(out, "http_responses_total", "counter",
	      "Responses by their status; none: the client left before there was one.");
	for (size_t i = 0; i < ARRAY_LENGTH(classes); i++)
		bytes_append_format(out, "execpy_http_responses_total{class=\"%s\"} %llu\n",
				    classes[i], NUMBER(server->metrics.responses[i]));
	write_one(out, "http_connections", "gauge", "Connections now.", http->connection_count);
	write_one(out, "http_connections_total", "counter", "Connections so far.",
		  http->connections_total);
	write_one(out, "http_requests_active", "gauge", "Requests under way.",
		  http->exchange_count);
	write_one(out, "http_body_bytes", "gauge", "Of requests' bodies, kept now.",
		  http->body_bytes);
	write_one(out, "http_refused_total", "counter", "What was no request, or came too late.",
		  http->refused_total);
	write_one(out, "log_lines_lost_total", "counter", "Lines that no log took.",
		  server->logs.lost);
}

static void write_daemon(const struct daemon_report *report, struct bytes *out)
{
	static const struct {
		const char *name, *type, *help;
		size_t offset;
	} numbers[] = {
		{"runs_running", "gauge", "Runs under way, of all clients of the daemon.",
		 offsetof(struct daemon_report, running)},
		{"queue_length", "gauge", "Requests that wait for a cell.",
		 offsetof(struct daemon_report, waiting)},
		{"queue_refused_total", "counter",
		 "Requests that waited too long, or found no room.",
		 offsetof(struct daemon_report, refused)},
		{"daemon_runs_total", "counter", "Runs that the daemon's warden began.",
		 offsetof(struct daemon_report, runs)},
		{"sessions", "gauge", "Sessions that are there.",
		 offsetof(struct daemon_report, sessions)},
		{"memory_bytes", "gauge", "What templates and parked cells hold.",
		 offsetof(struct daemon_report, memory_bytes)},
		{"memory_bound_bytes", "gauge", "What they may hold.",
		 offsetof(struct daemon_report, memory_bound_bytes)},
	};
	static const struct {
		const char *name, *type, *help;
		size_t offset;
	} of_template[] = {
		{"pool_parked", "gauge", "Parked cells.", offsetof(struct template_report, parked)},
		{"pool_target", "gauge", "Parked cells that are wanted.",
		 offsetof(struct template_report, target)},
		{"pool_running", "gauge", "Cells in which code runs.",
		 offsetof(struct template_report, running)},
		{"pool_hits_total", "counter", "Runs that found a parked cell.",
		 offsetof(struct template_report, hits)},
		{"pool_misses_total", "counter", "Runs that had to wait for one.",
		 offsetof(struct template_report, misses)},
	};

	for (size_t i = 0; i < ARRAY_LENGTH(numbers); i++)
		write_one(out, numbers[i].name, numbers[i].type, numbers[i].help,
			  *(const uint64_t *)((const char *)report + numbers[i].offset));
	for (size_t i = 0; i < ARRAY_LENGTH(of_template); i++) {
		begin(out, of_template[i].name, of_template[i].type, of_template[i].help);
		for (size_t j = 0; j < report->template_count; j++)
			bytes_append_format(
				out, "execpy_%s{template=\"%s\"} %llu\n", of_template[i].name,
				report->templates[j].name,
				NUMBER(*(const uint64_t *)((const char *)&report->templates[j] +
							   of_template[i].offset)));
	}
}

void metrics_write(const struct server *server, const struct daemon_report *report,
		   struct bytes *out)
{
	write_runs(&server->metrics, out);
	write_http(server, out);
	write_one(out, "daemon_up", "gauge", "Whether the daemon's warden answers.",
		  report != NULL);
	if (report)
		write_daemon(report, out);
}
