/* SPDX-License-Identifier: Apache-2.0 */
/* session_text: see session_text.h. */
#include "cli/session_text.h"

#include "base/bounds.h"
#include "cli/excerpt.h"
#include "engine/session_report.h"
#include "policy/limits.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ID_WIDTH = 30, TEMPLATE_WIDTH = 10, TIME_TEXT_MAX = 32 };

static void append_stranger(struct bytes *out, const char *text)
{
	excerpt_text(out, (struct span){(const uint8_t *)text, strlen(text)});
}

/* In the largest unit of which there are two: 119 s, 2 min, 59 h, 3 d. */
static void span_of_time(uint64_t ms, char text[TIME_TEXT_MAX])
{
	static const struct {
		uint64_t ms;
		const char *name;
	} units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "min"}};

	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
		if (ms >= 2 * units[i].ms) {
			snprintf(text, TIME_TEXT_MAX, "%llu %s",
				 (unsigned long long)(ms / units[i].ms), units[i].name);
			return;
		}
	}
	snprintf(text, TIME_TEXT_MAX, "%llu s", (unsigned long long)(ms / 1000));
}

static double mebibytes(uint64_t bytes)
{
	return (double)bytes / (double)MIB;
}

void session_text_heads(struct bytes *out)
{
	bytes_append_format(out, "%-*s  %-*s %5s %10s %8s %8s  %s\n", ID_WIDTH, "id",
			    TEMPLATE_WIDTH, "template", "runs", "memory", "age", "unused", "state");
}

void session_text_row(const struct execpy_session_info *info, struct bytes *out)
{
	char age[TIME_TEXT_MAX], unused[TIME_TEXT_MAX];

	span_of_time(info->age_ms, age);
	span_of_time(info->unused_ms, unused);
	bytes_append_format(out, "%-*s  %-*s %5llu %6.1f MiB %8s %8s  %s\n", ID_WIDTH, info->id,
			    TEMPLATE_WIDTH, info->template, (unsigned long long)info->runs,
			    mebibytes(info->memory_bytes), age, info->busy ? "-" : unused,
			    info->ended[0] ? "ended"
			    : info->busy   ? "busy"
					   : "idle");
}

static void append_limits(const struct execpy_limits *limits, struct bytes *out)
{
	const struct {
		const char *name;
		enum limit_unit unit;
		uint64_t value;
	} rows[] = {
		{"time", LIMIT_UNIT_MS, limits->time_ms},
		{"cpu", LIMIT_UNIT_MS, limits->cpu_ms},
		{"memory", LIMIT_UNIT_BYTES, limits->memory_bytes},
		{"processes", LIMIT_UNIT_COUNT, limits->processes},
		{"output", LIMIT_UNIT_BYTES, limits->output_bytes},
		{"disk", LIMIT_UNIT_BYTES, limits->disk_bytes},
	};
	char text[40];

	bytes_append_text(out, "limits       ");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		bool none = rows[i].value == UINT64_MAX; /* the engine's word for no bytes */

		unit_describe(rows[i].unit, none ? 0 : rows[i].value, text, sizeof text);
		bytes_append_format(out, "%s%s %s", i ? ", " : "", rows[i].name, text);
	}
	bytes_append_text(out, "\n");
}

/* "when unused for 30 min, after 24 h" */
static void append_end(const struct execpy_session_info *info, struct bytes *out)
{
	char text[TIME_TEXT_MAX];

	bytes_append_text(out, "ends         ");
	if (info->idle_ms) {
		span_of_time(info->idle_ms, text);
		bytes_append_format(out, "when unused for %s", text);
	}
	if (info->life_ms) {
		span_of_time(info->life_ms, text);
		bytes_append_format(out, "%safter %s", info->idle_ms ? ", " : "", text);
	}
	bytes_append_text(out, info->idle_ms || info->life_ms ? "\n" : "with its shell\n");
}

void session_text_info(const struct execpy_session_info *info, struct bytes *out)
{
	char age[TIME_TEXT_MAX], unused[TIME_TEXT_MAX];

	span_of_time(info->age_ms, age);
	span_of_time(info->unused_ms, unused);
	bytes_append_format(out, "id           %s\n", info->id);
	if (info->template[0])
		bytes_append_format(out, "template     %s\n", info->template);
	bytes_append_format(out, "state        %s\nruns         %llu\nage          %s",
			    info->busy ? "busy" : "idle", (unsigned long long)info->runs, age);
	if (!info->busy)
		bytes_append_format(out, ", unused for %s", unused);
	bytes_append_text(out, "\n");
	append_end(info, out);
	bytes_append_format(out, "memory       %.1f of %.0f MiB\n", mebibytes(info->memory_bytes),
			    mebibytes(info->limits.memory_bytes));
	append_limits(&info->limits, out);
	bytes_append_text(out, "checkpoints  ");
	for (size_t i = 0; i < info->checkpoint_count; i++) {
		bytes_append_text(out, i ? ", " : "");
		append_stranger(out, info->checkpoints[i]);
	}
	bytes_append_text(out, info->checkpoint_count ? "\n" : "none\n");
}

void session_text_file(const struct execpy_session_file *file, struct bytes *out)
{
	time_t seconds = (time_t)(file->modified_ns / 1000000000);
	struct tm when;
	char time_text[TIME_TEXT_MAX] = "-";

	if (localtime_r(&seconds, &when))
		strftime(time_text, sizeof time_text, "%Y-%m-%d %H:%M", &when);
	bytes_append_format(out, "%12llu  %s  ", (unsigned long long)file->size, time_text);
	append_stranger(out, file->path);
	bytes_append_format(out, "%s\n",
			    file->directory ? "/"
			    : file->link    ? " (link)"
			    : file->other   ? " (neither file nor directory)"
					    : "");
}
