/* SPDX-License-Identifier: Apache-2.0 */
/* result_json: the result object, written as it goes (docs/result.schema.json).
 *
 * What the cell said of itself is read with the bounded reader from a copy;
 * what is malformed is left out, so that the object is always valid. */
#include "engine/engine.h"

#include "base/cleanup.h"
#include "engine/json.h"

#include <stdio.h>
#include <string.h>

static bool is_text_type(struct span mime)
{
	struct span prefix = {mime.data, mime.length < 5 ? mime.length : 5};

	return span_equals(prefix, "text/") || span_equals(mime, "image/svg+xml") ||
	       span_equals(mime, "application/javascript");
}

/* type/subtype with the characters that such names may have. */
static bool valid_mime(struct span mime)
{
	bool slash = false;

	if (mime.length == 0 || mime.length > 100)
		return false;
	for (size_t i = 0; i < mime.length; i++) {
		uint8_t c = mime.data[i];

		if (c == '/' && !slash && i > 0 && i + 1 < mime.length)
			slash = true;
		else if (!((c >= 'a' && c <= 'z') ||
			   (slash && ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
				      c == '.' || c == '+' || c == '-'))))
			return false;
	}
	return slash;
}

/* A key may be there once only, and a guest may say it more often. */
static bool first_of_its_type(struct span seen[BUNDLE_TYPES_MAX], size_t *count, struct span mime)
{
	for (size_t i = 0; i < *count; i++)
		if (seen[i].length == mime.length &&
		    memcmp(seen[i].data, mime.data, mime.length) == 0)
			return false;
	if (*count == BUNDLE_TYPES_MAX)
		return false;
	seen[(*count)++] = mime;
	return true;
}

size_t result_each_datum(struct span body,
			 void (*tell)(void *user, const char *mime, struct span data), void *user)
{
	struct span seen[BUNDLE_TYPES_MAX], mime = {NULL, 0};
	struct reader fields = reader_of(body);
	struct field field;
	char name[101] = "";
	size_t count = 0;

	while (frame_next_field(&fields, &field) == 1) {
		if (field.name == FIELD_MIME) {
			mime = valid_mime(field.value) ? field.value : (struct span){NULL, 0};
		} else if (field.name == FIELD_DATA && mime.length > 0 &&
			   first_of_its_type(seen, &count, mime)) {
			snprintf(name, sizeof name, "%.*s", (int)mime.length,
				 (const char *)mime.data);
			tell(user, name, field.value);
			mime.length = 0;
		}
	}
	return count;
}

bool result_is_text(const char *mime)
{
	return is_text_type((struct span){(const uint8_t *)mime, strlen(mime)}) ||
	       strstr(mime, "json");
}

static void write_datum(void *user, const char *mime, struct span data)
{
	struct json *json = user;

	emit_key(json, mime);
	if (result_is_text(mime))
		emit_text(json, data);
	else
		emit_base64(json, data);
}

/* {mime: content}: text as it is, everything else as base64. JSON of a guest's
 * is text to us: it is not parsed here. */
void result_write_bundle(struct json *json, struct span body)
{
	emit_begin_object(json);
	if (result_each_datum(body, write_datum, json) == 0) {
		emit_key(json, "text/plain");
		emit_string(json, "");
	}
	emit_end_object(json);
}

/* Byte offset to column, as guest/failure.c does for exceptions. */
static uint64_t column_at(struct span line, uint64_t offset)
{
	uint64_t column = 1;

	for (size_t i = 0; i < line.length && i < offset; i++)
		column += (line.data[i] & 0xc0) != 0x80;
	return line.data ? column : offset + 1;
}

static void write_number_or_null(struct json *json, const char *key, uint64_t number)
{
	emit_key(json, key);
	if (number)
		emit_number(json, number);
	else
		emit_null(json);
}

static void write_text_or(struct json *json, const char *key, struct span body,
			  enum field_name name, const char *otherwise)
{
	struct field field;

	emit_key(json, key);
	if (result_find_field(body, name, &field))
		emit_text(json, field.value);
	else
		emit_string(json, otherwise);
}

/* `raw`: from the stop signal's handler, with byte offsets and no source. */
static void write_frame(struct execpy_result *result, struct json *json, struct span body, bool raw)
{
	struct field field;
	struct span line = {NULL, 0}, end_line = {NULL, 0};
	uint64_t line_number = result_number_field(body, FIELD_LINE);
	uint64_t end_number = result_number_field(body, FIELD_END_LINE);
	uint64_t column = result_number_field(body, FIELD_COLUMN);
	uint64_t end_column = result_number_field(body, FIELD_END_COLUMN);
	bool own = result_find_field(body, FIELD_FILE, &field) &&
		   result_is_own_file(result, field.value);

	if (raw && own) {
		line = result_code_line(result, line_number);
		end_line = result_code_line(result, end_number);
	}
	if (raw && result_find_field(body, FIELD_COLUMN, &field))
		column = column_at(line, column);
	if (raw && result_find_field(body, FIELD_END_COLUMN, &field))
		end_column = column_at(end_line, end_column);
	emit_begin_object(json);
	write_text_or(json, "file", body, FIELD_FILE, "?");
	write_number_or_null(json, "line", line_number);
	write_number_or_null(json, "column", column);
	write_number_or_null(json, "end_line", end_number);
	write_number_or_null(json, "end_column", end_column);
	write_text_or(json, "function", body, FIELD_FUNCTION, "<module>");
	if (line.data) {
		emit_key(json, "source");
		emit_text(json, line);
	} else {
		write_text_or(json, "source", body, FIELD_SOURCE, NULL);
	}
	emit_end_object(json);
}

/* Outermost first, in both cases. The handler wrote innermost first. */
static void write_frames(struct execpy_result *result, struct json *json, struct span body,
			 bool raw)
{
	struct span list[TRACEBACK_FRAMES_MAX + 1];
	size_t count = result_frame_list(body, list);

	emit_key(json, "frames");
	emit_begin_array(json);
	for (size_t i = 0; i < count; i++)
		write_frame(result, json, list[raw ? count - 1 - i : i], raw);
	emit_end_array(json);
}

const char *result_limit_type(enum execpy_status status)
{
	switch (status) {
	case EXECPY_TIMEOUT:
		return "TimeLimitError";
	case EXECPY_CPU_LIMIT:
		return "CpuLimitError";
	case EXECPY_MEMORY_LIMIT:
		return "MemoryLimitError";
	case EXECPY_OUTPUT_LIMIT:
		return "OutputLimitError";
	case EXECPY_ANOMALY:
		return "SecurityError";
	case EXECPY_CRASHED:
		return "Crash";
	case EXECPY_CANCELLED:
		return "Cancelled";
	case EXECPY_INTERNAL_ERROR:
		return "InternalError";
	default:
		return NULL;
	}
}

static void write_refusal(struct execpy_result *result, struct json *json)
{
	const struct finding *cause = verdict_cause(&result->verdict);
	bool security = cause && strcmp(finding_error_type(cause), "SecurityError") == 0;
	autobytes text = {0};
	autobytes frame = {0};
	char name[32];

	emit_begin_object(json);
	emit_key(json, "type");
	emit_string(json, security || !cause ? "SecurityError" : "SyntaxError");
	emit_key(json, "message");
	emit_string(json, cause ? cause->message : "refused");
	if (cause)
		result_refusal_text(result, cause, &text);
	emit_key(json, "traceback");
	emit_text(json, bytes_span(&text));
	emit_key(json, "frames");
	emit_begin_array(json);
	if (cause && cause->line > 0) {
		struct span line = result_code_line(result, cause->line);

		result_file_name(result, name);
		frame_put_text(&frame, FIELD_FILE, name);
		frame_put_number(&frame, FIELD_LINE, cause->line);
		frame_put_number(&frame, FIELD_COLUMN, cause->column);
		frame_put_number(&frame, FIELD_END_LINE, cause->end_line);
		frame_put_number(&frame, FIELD_END_COLUMN, cause->end_column);
		frame_put(&frame, FIELD_SOURCE, line.data, line.length);
		if (!frame.failed)
			write_frame(result, json, bytes_span(&frame), false);
	}
	emit_end_array(json);
	emit_key(json, "hint");
	emit_string(json, cause && cause->hint[0] ? cause->hint : NULL);
	emit_end_object(json);
}

static void write_error(struct execpy_result *result, struct json *json)
{
	const char *type = result_limit_type(result->status);

	emit_key(json, "error");
	if (result->status == EXECPY_BLOCKED) {
		write_refusal(result, json);
		return;
	}
	if (result->status == EXECPY_OK || (!type && result->error.length == 0)) {
		emit_null(json);
		return;
	}
	emit_begin_object(json);
	if (type) {
		emit_key(json, "type");
		emit_string(json, type);
		emit_key(json, "message");
		emit_string(json, result->reason);
		write_text_or(json, "traceback", result->error, FIELD_TRACEBACK, NULL);
		if (result->error.length > 0)
			write_frames(result, json, result->error, false);
		else
			write_frames(result, json, result_stop_frames(result), true);
	} else {
		write_text_or(json, "type", result->error, FIELD_TYPE, "Exception");
		write_text_or(json, "message", result->error, FIELD_TEXT, "");
		write_text_or(json, "traceback", result->error, FIELD_TRACEBACK, NULL);
		write_frames(result, json, result->error, false);
	}
	emit_key(json, "hint");
	emit_string(json, result_hint(result->status));
	emit_end_object(json);
}

static void write_output(struct execpy_result *result, struct json *json)
{
	static const char *const names[] = {"stdout", "stderr"};
	bool lossy = false;
	uint64_t dropped = 0;

	for (size_t i = 0; i < 2; i++) {
		struct span spans[JSON_SPANS_MAX] = {0};

		capture_spans(&result->output[i], spans);
		emit_key(json, names[i]);
		lossy |= emit_pieces(json, spans);
		dropped += result->output[i].dropped;
	}
	emit_key(json, "output");
	emit_begin_object(json);
	emit_count(json, "stdout_bytes", result->output[0].total);
	emit_count(json, "stderr_bytes", result->output[1].total);
	emit_key(json, "truncated");
	emit_bool(json, dropped > 0);
	emit_count(json, "dropped_bytes", dropped);
	if (lossy) {
		emit_key(json, "lossy");
		emit_bool(json, true);
	}
	emit_end_object(json);
}

static void write_files(struct execpy_result *result, struct json *json)
{
	emit_key(json, "files");
	emit_begin_array(json);
	for (size_t i = 0; i < result->file_count; i++) {
		const struct collected_file *file = &result->files[i];

		emit_begin_object(json);
		emit_key(json, "path");
		emit_string(json, file->path);
		if (file->refused) {
			emit_key(json, "refused");
			emit_string(json, file->refused);
		} else {
			emit_count(json, "size", file->size);
			emit_key(json, "media_type");
			emit_string(json, file->media_type);
			emit_key(json, "sha256");
			emit_string(json, file->sha256);
			if (result->session[0]) {
				emit_key(json, "change");
				emit_string(json, file->changed ? "changed" : "created");
			}
			if (file->content.data) {
				emit_key(json, "content_base64");
				emit_base64(json, bytes_span(&file->content));
			}
		}
		emit_end_object(json);
	}
	emit_end_array(json);
}

/* A finding that is about no place in the code. */
static void write_note(struct json *json, const char *rule, const char *severity,
		       const char *message, const char *hint)
{
	static const char *const places[] = {"line", "column", "end_line", "end_column"};

	emit_begin_object(json);
	emit_key(json, "rule");
	emit_string(json, rule);
	emit_key(json, "severity");
	emit_string(json, severity);
	emit_key(json, "message");
	emit_string(json, message);
	for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
		emit_key(json, places[i]);
		emit_null(json);
	}
	emit_key(json, "hint");
	emit_string(json, hint);
	emit_end_object(json);
}

void result_write_finding(struct json *json, const struct finding *finding)
{
	emit_begin_object(json);
	emit_key(json, "rule");
	emit_string(json, rule_infos[finding->rule].id);
	emit_key(json, "severity");
	emit_string(json, severity_name(finding->severity));
	emit_key(json, "message");
	emit_string(json, finding->message);
	write_number_or_null(json, "line", finding->line);
	write_number_or_null(json, "column", finding->column);
	write_number_or_null(json, "end_line", finding->end_line);
	write_number_or_null(json, "end_column", finding->end_column);
	emit_key(json, "hint");
	emit_string(json, finding->hint[0] ? finding->hint : NULL);
	emit_end_object(json);
}

bool result_write_finding_at(struct execpy_result *result, size_t index, struct json *json)
{
	const char *note = (const char *)result->notes.data;

	if (result->files_cut && index-- == 0) {
		write_note(json, "files-incomplete", "warn", result->files_cut,
			   "Put the files into one archive, or leave fewer behind.");
		return true;
	}
	if (result->fenced && index-- == 0) {
		write_note(json, rule_infos[RULE_FENCE].id, severity_name(SEVERITY_NOTE),
			   rule_infos[RULE_FENCE].message, rule_infos[RULE_FENCE].hint);
		return true;
	}
	if (index < result->verdict.finding_count) {
		result_write_finding(json, &result->verdict.findings[index]);
		return true;
	}
	index -= result->verdict.finding_count;
	for (size_t at = 0; !result->probe && at < result->notes.length;
	     at += strlen(note + at) + 1) {
		if (index-- > 0)
			continue;
		write_note(json, "watch", "note", note + at,
			   "The sandbox refused it; under another policy it would have ended the "
			   "run.");
		return true;
	}
	return false;
}

void result_write_findings(struct execpy_result *result, struct json *json)
{
	size_t index = 0;

	emit_key(json, "findings");
	emit_begin_array(json);
	while (result_write_finding_at(result, index, json))
		index++;
	emit_end_array(json);
}

static void write_anomaly(struct execpy_result *result, struct json *json)
{
	emit_key(json, "anomaly");
	if (result->status != EXECPY_ANOMALY) {
		emit_null(json);
		return;
	}
	emit_begin_object(json);
	emit_key(json, "event");
	emit_string(json, result->anomaly_event ? result->anomaly_event : "unknown");
	emit_key(json, "detail");
	emit_string(json, result->anomaly_detail);
	write_number_or_null(json, "line",
			     result->anomaly_line ? result->anomaly_line
						  : result_stop_line(result));
	emit_key(json, "action");
	emit_string(json, "killed");
	emit_end_object(json);
}

static void write_measures(struct execpy_result *result, struct json *json)
{
	emit_key(json, "usage");
	emit_begin_object(json);
	emit_key(json, "wall_ms");
	emit_milliseconds(json, result->wall_us);
	emit_key(json, "cpu_ms");
	emit_milliseconds(json, result->cpu_us);
	emit_count(json, "memory_peak_bytes", result->memory_peak_bytes);
	emit_count(json, "processes_peak", result->processes_peak);
	emit_end_object(json);

	emit_key(json, "timing");
	emit_begin_object(json);
	emit_key(json, "wait_ms");
	emit_milliseconds(json, result->wait_us);
	emit_key(json, "verify_ms");
	emit_milliseconds(json, result->verify_us);
	/* The verifier works in the cell, on the run's clock. */
	emit_key(json, "run_ms");
	emit_milliseconds(json, result->wall_us > result->verify_us
					? result->wall_us - result->verify_us
					: 0);
	emit_key(json, "total_ms");
	emit_milliseconds(json, result->total_us);
	emit_end_object(json);

	emit_key(json, "limits");
	emit_begin_object(json);
	for (size_t i = 0; i < limit_count; i++) {
		emit_count(json, limit_infos[i].name, limit_get(&result->limits, &limit_infos[i]));
	}
	emit_end_object(json);
}

static void write_status(const struct execpy_result *result, struct json *json)
{
	emit_key(json, "status");
	emit_string(json, execpy_status_name(result->status));
	if (result->status == EXECPY_INTERNAL_ERROR) {
		emit_key(json, "retry");
		emit_bool(json, true);
	}
	emit_key(json, "exit_code");
	if (result->exit_code >= 0)
		emit_number(json, (uint64_t)result->exit_code);
	else
		emit_null(json);
	write_number_or_null(json, "signal", (uint64_t)result->signal);
}

void result_write_end(struct execpy_result *result, struct json *json)
{
	write_status(result, json);
	write_error(result, json);
	write_anomaly(result, json);
	write_measures(result, json);
}

static void write_session(struct execpy_result *result, struct json *json)
{
	emit_key(json, "session");
	if (!result->session[0]) {
		emit_null(json);
		return;
	}
	emit_begin_object(json);
	emit_key(json, "id");
	emit_string(json, result->session);
	emit_count(json, "run", result->session_run);
	emit_key(json, "restored");
	emit_bool(json, result->restored);
	emit_key(json, "lost");
	emit_lines(json, result->lost.length > 0 ? (const char *)result->lost.data : "");
	emit_key(json, "deleted");
	emit_begin_array(json);
	for (size_t i = 0; i < result->deleted_count; i++)
		emit_string(json, result->deleted[i]);
	emit_end_array(json);
	emit_end_object(json);
}

void result_write(struct execpy_result *result, struct json *json)
{
	emit_begin_object(json);
	emit_key(json, "id");
	emit_string(json, result->id);
	write_status(result, json);
	write_output(result, json);
	emit_key(json, "value");
	if (result->value.length > 0)
		result_write_bundle(json, result->value);
	else
		emit_null(json);
	emit_key(json, "displays");
	emit_begin_array(json);
	for (size_t i = 0; i < result->display_count; i++)
		result_write_bundle(json, result->displays[i]);
	emit_end_array(json);
	write_error(result, json);
	result_write_findings(result, json);
	write_anomaly(result, json);
	write_files(result, json);
	write_measures(result, json);
	emit_key(json, "template");
	emit_string(json, result->template);
	emit_key(json, "warm");
	emit_bool(json, result->warm);
	write_session(result, json);
	emit_key(json, "policy");
	emit_string(json, result->policy);
	emit_end_object(json);
}

const char *execpy_result_json(struct execpy_result *result, size_t *ret_length)
{
	struct json json = {.out = &result->json};

	if (!result->json_made) {
		result->json_made = true;
		/* All parts have bounds of their own; escaping takes up to six bytes
		 * for one, so the whole may be larger than any of them. */
		result->json.ceiling = SIZE_MAX / 4;
		result_write(result, &json);
		bytes_append(&result->json, "", 1);
	}
	if (result->json.failed)
		return NULL;
	if (ret_length)
		*ret_length = result->json.length - 1;
	return (const char *)result->json.data;
}
