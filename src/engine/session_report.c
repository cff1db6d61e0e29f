/* SPDX-License-Identifier: Apache-2.0 */
/* session_report: see session_report.h. */
#include "engine/session_report.h"

#include <string.h>

/* 0 stands for never. */
static void emit_time(struct json *json, const char *key, uint64_t ms)
{
	emit_key(json, key);
	if (ms)
		emit_number(json, ms);
	else
		emit_null(json);
}

static void emit_limits(struct json *json, const struct execpy_limits *limits)
{
	emit_begin_object(json);
	emit_count(json, "time_ms", limits->time_ms);
	emit_count(json, "cpu_ms", limits->cpu_ms);
	emit_count(json, "memory_bytes", limits->memory_bytes);
	emit_count(json, "processes", limits->processes);
	emit_count(json, "output_bytes",
		   limits->output_bytes == UINT64_MAX ? 0 : limits->output_bytes);
	emit_count(json, "disk_bytes", limits->disk_bytes);
	emit_end_object(json);
}

void session_report_json(const struct execpy_session_info *info, struct json *json)
{
	emit_begin_object(json);
	session_report_members(info, json);
	emit_end_object(json);
}

void session_report_members(const struct execpy_session_info *info, struct json *json)
{
	emit_key(json, "id");
	emit_string(json, info->id);
	emit_key(json, "state");
	emit_string(json, info->ended[0] ? "ended" : info->busy ? "busy" : "idle");
	emit_key(json, "ended");
	emit_string(json, info->ended[0] ? info->ended : NULL);
	emit_key(json, "template");
	emit_string(json, info->template);
	emit_count(json, "runs", info->runs);
	emit_count(json, "age_ms", info->age_ms);
	emit_count(json, "unused_ms", info->unused_ms);
	emit_time(json, "idle_ms", info->idle_ms);
	emit_time(json, "life_ms", info->life_ms);
	emit_count(json, "memory_bytes", info->memory_bytes);
	emit_key(json, "limits");
	emit_limits(json, &info->limits);
	emit_key(json, "checkpoints");
	emit_begin_array(json);
	for (size_t i = 0; i < info->checkpoint_count; i++)
		emit_string(json, info->checkpoints[i]);
	emit_end_array(json);
	emit_key(json, "lost");
	emit_lines(json, info->lost);
}

const char *session_report_file_kind(const struct execpy_session_file *file)
{
	return file->directory ? "directory" : file->link ? "link" : file->other ? "other" : "file";
}

void session_report_file_json(const struct execpy_session_file *file, struct json *json)
{
	emit_begin_object(json);
	emit_key(json, "path");
	emit_text(json, (struct span){(const uint8_t *)file->path, strlen(file->path)});
	emit_key(json, "type");
	emit_string(json, session_report_file_kind(file));
	emit_count(json, "size", file->size);
	emit_count(json, "modified_ms",
		   file->modified_ns > 0 ? (uint64_t)file->modified_ns / 1000000 : 0);
	emit_end_object(json);
}
