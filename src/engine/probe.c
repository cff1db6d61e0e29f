/* SPDX-License-Identifier: Apache-2.0 */
/* probe: what a check or a dry run has to tell, as JSON.
 *
 * What the code did is its own word, by way of the audit hook, for all that
 * Python itself reports; what it tried with the kernel is the watch's. Neither
 * decides anything: the decision is the verdict's, or an anomaly's. */
#include "engine/engine.h"

#include "base/cleanup.h"
#include "engine/json.h"

#include <inttypes.h>
#include <string.h>

/* Which kinds of record make which list. */
static const struct {
	const char *key, *kind;
} lists[] = {
	{"imports", "import"},    {"files_read", "open"}, {"files_written", "write"},
	{"processes", "process"}, {"sockets", "socket"},  {"native", "native"},
	{"evaluated", "exec"},
};

static void write_record(struct json *json, struct span body)
{
	struct field field;
	uint64_t line = 0;

	emit_begin_object(json);
	emit_key(json, "event");
	if (result_find_field(body, FIELD_EVENT, &field))
		emit_text(json, field.value);
	else
		emit_null(json);
	emit_key(json, "detail");
	if (result_find_field(body, FIELD_DETAIL, &field))
		emit_text(json, field.value);
	else
		emit_null(json);
	emit_key(json, "line");
	if (result_find_field(body, FIELD_LINE, &field) && field_number(&field, &line) == 0 && line)
		emit_number(json, line);
	else
		emit_null(json);
	emit_end_object(json);
}

static void write_list(const struct execpy_result *result, struct json *json, const char *kind)
{
	struct reader reader = reader_of(bytes_span(&result->response));
	struct frame frame;
	struct field field;
	size_t count = 0;

	emit_begin_array(json);
	while (frame_next(&reader, RESPONSE_BYTES_MAX, &frame) == 1)
		if (frame.type == MESSAGE_RECORD && count < PROBE_RECORDS_MAX &&
		    result_find_field(frame.body, FIELD_TYPE, &field) &&
		    span_equals(field.value, kind)) {
			write_record(json, frame.body);
			count++;
		}
	emit_end_array(json);
}

static void write_samples(const struct execpy_result *result, struct json *json)
{
	struct reader reader = reader_of(bytes_span(&result->samples));

	emit_key(json, "samples");
	emit_begin_array(json);
	while (reader.left >= 24) {
		emit_begin_object(json);
		emit_key(json, "at_ms");
		emit_milliseconds(json, reader_u64(&reader));
		emit_key(json, "cpu_ms");
		emit_milliseconds(json, reader_u64(&reader));
		emit_count(json, "memory_bytes", reader_u64(&reader));
		emit_end_object(json);
	}
	emit_end_array(json);
}

static void write_seen(struct execpy_result *result, struct json *json)
{
	const char *note = (const char *)result->notes.data;

	for (size_t i = 0; i < ARRAY_LENGTH(lists); i++) {
		emit_key(json, lists[i].key);
		write_list(result, json, lists[i].kind);
	}
	emit_key(json, "system_calls");
	emit_begin_array(json);
	for (size_t at = 0; at < result->notes.length; at += strlen(note + at) + 1)
		emit_string(json, note + at);
	emit_end_array(json);
	write_samples(result, json);
}

const char *execpy_result_check_json(struct execpy_result *result, size_t *ret_length)
{
	struct json json = {.out = &result->json};
	bool blocked = result->status == EXECPY_BLOCKED || result->status == EXECPY_ANOMALY;

	if (!result->json_made) {
		result->json_made = true;
		emit_begin_object(&json);
		emit_key(&json, "decision");
		emit_string(&json, blocked ? "block" : "allow");
		result_write_findings(result, &json);
		if (result->probe && result->status != EXECPY_BLOCKED) {
			result_write_end(result, &json);
			write_seen(result, &json);
		}
		emit_end_object(&json);
		bytes_append(&result->json, "", 1);
	}
	if (result->json.failed)
		return NULL;
	if (ret_length)
		*ret_length = result->json.length - 1;
	return (const char *)result->json.data;
}

/* Printable: a guest's bytes go to a terminal. */
static void append_printable(struct bytes *out, struct span text)
{
	while (text.length > 0) {
		size_t length = utf8_sequence(text);
		uint8_t c = text.data[0];

		if (length == 0 || c < ' ' || c == 0x7f) {
			bytes_append_format(out, "\\x%02x", c);
			length = 1;
		} else {
			bytes_append(out, text.data, length);
		}
		text.data += length;
		text.length -= length;
	}
}

static void append_records(const struct execpy_result *result, struct bytes *out, const char *key,
			   const char *kind)
{
	struct reader reader = reader_of(bytes_span(&result->response));
	struct frame frame;
	struct field field;
	size_t count = 0;

	while (frame_next(&reader, RESPONSE_BYTES_MAX, &frame) == 1) {
		uint64_t line = 0;

		if (frame.type != MESSAGE_RECORD || count++ >= PROBE_RECORDS_MAX ||
		    !result_find_field(frame.body, FIELD_TYPE, &field) ||
		    !span_equals(field.value, kind))
			continue;
		bytes_append_format(out, "  %-14s", key);
		if (result_find_field(frame.body, FIELD_DETAIL, &field) ||
		    result_find_field(frame.body, FIELD_EVENT, &field))
			append_printable(out, field.value);
		if (result_find_field(frame.body, FIELD_LINE, &field) &&
		    field_number(&field, &line) == 0)
			bytes_append_format(out, "  (line %" PRIu64 ")", line);
		bytes_append_text(out, "\n");
	}
}

const char *execpy_result_probe_text(struct execpy_result *result, size_t *ret_length)
{
	struct bytes *out = &result->probe_text;
	const char *note = (const char *)result->notes.data;
	const char *reason = execpy_result_reason(result);

	bytes_clear(out);
	bytes_append_format(out, "dry run: %s", execpy_status_name(result->status));
	if (reason)
		bytes_append_format(out, ": %s", reason);
	bytes_append_format(
		out,
		"\n  %-14s%" PRIu64 ".%03" PRIu64 " ms of wall time, %" PRIu64 ".%03" PRIu64
		" ms of CPU, %" PRIu64 " KiB at most, %" PRIu64 " processes\n",
		"used", result->wall_us / 1000, result->wall_us % 1000, result->cpu_us / 1000,
		result->cpu_us % 1000, result->memory_peak_bytes / 1024, result->processes_peak);
	for (size_t i = 0; i < ARRAY_LENGTH(lists); i++)
		append_records(result, out, lists[i].key, lists[i].kind);
	for (size_t at = 0; at < result->notes.length; at += strlen(note + at) + 1) {
		bytes_append_format(out, "  %-14s", "system call");
		append_printable(out, (struct span){(const uint8_t *)note + at, strlen(note + at)});
		bytes_append_text(out, "\n");
	}
	*ret_length = out->length;
	return out->failed ? NULL : (const char *)out->data;
}
