/* SPDX-License-Identifier: Apache-2.0 */
/* result: what became of a run, decided and written down.
 *
 * Theory of operation. Two sources meet here. The warden's MESSAGE_ENDED says
 * how the run ended, by the kernel's evidence; it alone decides the status.
 * The mailbox holds the cell's own words: value, displays, error, and the
 * frames at a limit. They are copied, then read with the bounded reader, and
 * what is malformed is left out. */
#include "engine/engine.h"

#include "base/cleanup.h"
#include "engine/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const char *const status_names[] = {
	[EXECPY_OK] = "ok",
	[EXECPY_ERROR] = "error",
	[EXECPY_BLOCKED] = "blocked",
	[EXECPY_ANOMALY] = "anomaly",
	[EXECPY_TIMEOUT] = "timeout",
	[EXECPY_CPU_LIMIT] = "cpu_limit",
	[EXECPY_MEMORY_LIMIT] = "memory_limit",
	[EXECPY_OUTPUT_LIMIT] = "output_limit",
	[EXECPY_DISK_LIMIT] = "disk_limit",
	[EXECPY_CRASHED] = "crashed",
	[EXECPY_CANCELLED] = "cancelled",
	[EXECPY_INTERNAL_ERROR] = "internal_error",
};

const char *execpy_status_name(enum execpy_status status)
{
	return (size_t)status < ARRAY_LENGTH(status_names) ? status_names[status] : "unknown";
}

enum execpy_status execpy_result_status(const struct execpy_result *result)
{
	return result->status;
}

int execpy_result_exit_code(const struct execpy_result *result)
{
	return result->exit_code;
}

int execpy_result_signal(const struct execpy_result *result)
{
	return result->signal;
}

const char *execpy_result_reason(const struct execpy_result *result)
{
	return result->reason[0] ? result->reason : NULL;
}

bool result_find_field(struct span body, enum field_name name, struct field *ret_field)
{
	struct reader fields = reader_of(body);

	while (frame_next_field(&fields, ret_field) == 1)
		if (ret_field->name == (uint16_t)name)
			return true;
	return false;
}

static uint64_t number_field(struct span body, enum field_name name)
{
	struct field field;
	uint64_t number = 0;

	if (result_find_field(body, name, &field))
		field_number(&field, &number);
	return number;
}

/* Written before user code, and out of its reach since. */
static void take_verdict(struct execpy_result *result, int fd)
{
	autobytes bytes = {0};
	struct error err = {0};
	struct reader reader;
	struct frame frame;
	struct field field;

	if (verdict_read(fd, &bytes, &err) < 0 || bytes.length == 0)
		return;
	reader = reader_of(bytes_span(&bytes));
	if (frame_next(&reader, VERDICT_BYTES_MAX, &frame) != 1 || frame.type != MESSAGE_VERDICT ||
	    !result_find_field(frame.body, FIELD_FINDINGS, &field) ||
	    verdict_decode(field.value, &result->verdict, &err) < 0) {
		snprintf(result->internal, sizeof result->internal,
			 "the verdict cannot be read: %.200s", err.text);
		return;
	}
	result->has_verdict = true;
	result->verify_us = number_field(frame.body, FIELD_VERIFY_US);
}

/* What the audit hook saw; the warden's word, if there is one, goes first. */
static void take_anomaly(struct execpy_result *result, struct span body)
{
	struct field field;

	if (result->anomaly_event)
		return;
	if (result_find_field(body, FIELD_EVENT, &field))
		result->anomaly_event = span_to_string(field.value);
	if (result_find_field(body, FIELD_DETAIL, &field))
		result->anomaly_detail = span_to_string(field.value);
	result->anomaly_line = number_field(body, FIELD_LINE);
}

/* Finds the parts of the response; the last value and error count. */
void result_index(struct execpy_result *result)
{
	struct reader reader = reader_of(bytes_span(&result->response));
	struct frame frame;

	while (frame_next(&reader, RESPONSE_BYTES_MAX, &frame) == 1) {
		struct span *grown;

		switch (frame.type) {
		case MESSAGE_VALUE:
			result->value = frame.body;
			break;
		case MESSAGE_ERROR:
			result->error = frame.body;
			break;
		case MESSAGE_ANOMALY:
			take_anomaly(result, frame.body);
			break;
		case MESSAGE_DISPLAY:
			if (result->display_count >= DISPLAY_COUNT_MAX)
				break;
			grown = realloc(result->displays,
					(result->display_count + 1) * sizeof *grown);
			if (!grown)
				break;
			result->displays = grown;
			result->displays[result->display_count++] = frame.body;
			break;
		default:
			break;
		}
	}
}

/* An uncaught ENOSPC, EDQUOT or EFBIG of the code's own word, with a disk that
 * the kernel says is full. */
static bool disk_ended_it(const struct run *run)
{
	uint64_t number = number_field(run->result->error, FIELD_ERRNO);

	return run->disk_full && (number == ENOSPC || number == EDQUOT || number == EFBIG);
}

/* Without a memory cgroup the kernel's refusal reaches the code as MemoryError:
 * RLIMIT_DATA stands at a small multiple of the limit. */
static bool memory_ended_it(const struct run *run)
{
	struct field field;

	return run->sampled && result_find_field(run->result->error, FIELD_TYPE, &field) &&
	       span_equals(field.value, "MemoryError");
}

static enum execpy_status status_of_exit(struct run *run)
{
	struct execpy_result *result = run->result;

	if (!run->has_status)
		return EXECPY_INTERNAL_ERROR;
	if (WIFSIGNALED(run->status)) {
		result->signal = WTERMSIG(run->status);
		return result->anomaly_event && result->signal == SIGKILL ? EXECPY_ANOMALY
									  : EXECPY_CRASHED;
	}
	result->exit_code = WEXITSTATUS(run->status);
	if (result->exit_code == 0)
		return EXECPY_OK;
	if (memory_ended_it(run))
		return EXECPY_MEMORY_LIMIT;
	return disk_ended_it(run) ? EXECPY_DISK_LIMIT : EXECPY_ERROR;
}

/* No verdict came: the process that verifies died or reached a limit. */
static enum execpy_status unverified(struct run *run, const char *how)
{
	struct execpy_result *result = run->result;

	if (verdict_of_crash(run->policy.severity[RULE_CRASH], how, &result->verdict) < 0)
		return EXECPY_INTERNAL_ERROR;
	result->has_verdict = true;
	return EXECPY_BLOCKED;
}

static enum execpy_status decide_verdict(struct run *run)
{
	switch (run->ending) {
	case ENDING_EXITED:
		if (run->result->has_verdict)
			return run->result->verdict.blocked ? EXECPY_BLOCKED : EXECPY_OK;
		if (run->has_status && WIFSIGNALED(run->status))
			return unverified(run, "the parser crashed on it");
		return EXECPY_INTERNAL_ERROR;
	case ENDING_TIME:
	case ENDING_CPU:
		return unverified(run, "it took too long");
	case ENDING_MEMORY:
		return unverified(run, "it took too much memory");
	default:
		return EXECPY_INTERNAL_ERROR;
	}
}

static enum execpy_status decide(struct run *run)
{
	struct execpy_result *result = run->result;
	struct span said = bytes_span(&result->output[1].head); /* not terminated */
	enum execpy_status status;

	if (result->has_verdict ? result->verdict.blocked || result->check_only
				: run->ending != ENDING_FAILED && run->ending != ENDING_KILLED) {
		status = decide_verdict(run);
		if (status == EXECPY_INTERNAL_ERROR && !result->internal[0])
			snprintf(result->internal, sizeof result->internal,
				 "the verifier gave no verdict: %.*s",
				 (int)(said.length < 200 ? said.length : 200),
				 said.length ? (const char *)said.data : "");
		return status;
	}
	switch (run->ending) {
	case ENDING_EXITED:
		status = status_of_exit(run);
		break;
	case ENDING_TIME:
		status = EXECPY_TIMEOUT;
		break;
	case ENDING_CPU:
		status = EXECPY_CPU_LIMIT;
		break;
	case ENDING_MEMORY:
		status = EXECPY_MEMORY_LIMIT;
		break;
	case ENDING_ANOMALY:
		status = EXECPY_ANOMALY;
		break;
	case ENDING_KILLED:
		status = run->reason == KILL_OUTPUT ? EXECPY_OUTPUT_LIMIT : EXECPY_CANCELLED;
		break;
	case ENDING_FAILED:
	default:
		if (!result->internal[0])
			snprintf(result->internal, sizeof result->internal, "no ending was told");
		return run->cancelled ? EXECPY_CANCELLED : EXECPY_INTERNAL_ERROR;
	}
	/* Ending by itself does not undo that there was too much output. */
	if (run->ending == ENDING_EXITED && !run->request->truncate_output &&
	    result->output[0].dropped + result->output[1].dropped > 0)
		status = EXECPY_OUTPUT_LIMIT;
	if (status == EXECPY_ANOMALY || status == EXECPY_OUTPUT_LIMIT ||
	    run->ending != ENDING_EXITED) {
		result->exit_code = -1;
		result->signal = SIGKILL;
	}
	return status;
}

static void describe(const char *name, const struct limits *limits, char *text, size_t size)
{
	const struct limit_info *info = limit_find(name);

	limit_describe(info, limit_get(limits, info), text, size);
}

/* One line for a person: what ended the run, and where. */
static void explain(struct execpy_result *result)
{
	static const struct {
		enum execpy_status status;
		const char *limit, *words;
	} limits[] = {
		{EXECPY_TIMEOUT, "time_ms", "time limit"},
		{EXECPY_CPU_LIMIT, "cpu_ms", "CPU time limit"},
		{EXECPY_MEMORY_LIMIT, "memory_bytes", "memory limit"},
		{EXECPY_OUTPUT_LIMIT, "output_bytes", "output limit"},
		{EXECPY_DISK_LIMIT, "disk_bytes", "disk limit"},
	};
	char value[40];

	for (size_t i = 0; i < ARRAY_LENGTH(limits); i++) {
		if (limits[i].status != result->status)
			continue;
		describe(limits[i].limit, &result->limits, value, sizeof value);
		snprintf(result->reason, sizeof result->reason, "the %s of %s was reached",
			 limits[i].words, value);
	}
	if (result->status == EXECPY_BLOCKED) {
		const struct finding *cause = verdict_cause(&result->verdict);

		snprintf(result->reason, sizeof result->reason, "%s: %.250s",
			 cause ? finding_error_type(cause) : "SecurityError",
			 cause ? cause->message : "refused");
	} else if (result->status == EXECPY_ANOMALY)
		snprintf(result->reason, sizeof result->reason, "the run was ended: %.60s %.200s",
			 result->anomaly_event ? result->anomaly_event : "anomaly",
			 result->anomaly_detail ? result->anomaly_detail : "");
	else if (result->status == EXECPY_CRASHED)
		snprintf(result->reason, sizeof result->reason,
			 "the code was ended by signal %d (%s)", result->signal,
			 strsignal(result->signal));
	else if (result->status == EXECPY_CANCELLED)
		snprintf(result->reason, sizeof result->reason, "the run was cancelled");
	else if (result->status == EXECPY_INTERNAL_ERROR)
		snprintf(result->reason, sizeof result->reason, "%s", result->internal);
}

void result_finish(struct run *run)
{
	struct execpy_result *result = run->result;
	struct error err = {0};

	if (run->mailbox >= 0) {
		result->response.ceiling = RESPONSE_BYTES_MAX;
		mailbox_read_response(run->mailbox, &result->response, &err);
		mailbox_read_frames(run->mailbox, &result->frames, &err);
		take_verdict(result, run->verdict);
		result_index(result);
	}
	result->total_us = (uint64_t)(now_us() - run->began_us);
	result->status = decide(run);
	explain(result);
}

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

/* {mime: content}: text as it is, everything else as base64. JSON of a guest's
 * is text to us: it is not parsed here. */
static void write_bundle(struct json *json, struct span body)
{
	struct span seen[BUNDLE_TYPES_MAX], mime = {NULL, 0};
	struct reader fields = reader_of(body);
	struct field field;
	char name[101] = "";
	size_t count = 0;

	emit_begin_object(json);
	while (frame_next_field(&fields, &field) == 1) {
		if (field.name == FIELD_MIME) {
			mime = valid_mime(field.value) ? field.value : (struct span){NULL, 0};
		} else if (field.name == FIELD_DATA && mime.length > 0 &&
			   first_of_its_type(seen, &count, mime)) {
			snprintf(name, sizeof name, "%.*s", (int)mime.length,
				 (const char *)mime.data);
			emit_key(json, name);
			if (is_text_type(mime) || strstr(name, "json"))
				emit_text(json, field.value);
			else
				emit_base64(json, field.value);
			mime.length = 0;
		}
	}
	if (count == 0) {
		emit_key(json, "text/plain");
		emit_string(json, "");
	}
	emit_end_object(json);
}

static struct span code_line(const struct execpy_result *result, uint64_t number)
{
	struct span rest = bytes_span(&result->code);

	for (uint64_t line = 1; rest.length > 0; line++) {
		const uint8_t *newline = memchr(rest.data, '\n', rest.length);
		size_t length = newline ? (size_t)(newline - rest.data) : rest.length;

		if (line == number)
			return (struct span){rest.data, length};
		if (!newline)
			break;
		rest.data += length + 1;
		rest.length -= length + 1;
	}
	return (struct span){NULL, 0};
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
	uint64_t line_number = number_field(body, FIELD_LINE);
	uint64_t end_number = number_field(body, FIELD_END_LINE);
	uint64_t column = number_field(body, FIELD_COLUMN);
	uint64_t end_column = number_field(body, FIELD_END_COLUMN);
	bool own =
		result_find_field(body, FIELD_FILE, &field) && span_equals(field.value, "main.py");

	if (raw && own) {
		line = code_line(result, line_number);
		end_line = code_line(result, end_number);
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

static size_t frame_list(struct span body, struct span list[TRACEBACK_FRAMES_MAX])
{
	struct reader fields = reader_of(body);
	struct field field;
	size_t count = 0;

	while (count < TRACEBACK_FRAMES_MAX + 1u && frame_next_field(&fields, &field) == 1)
		if (field.name == FIELD_FRAME && count < TRACEBACK_FRAMES_MAX)
			list[count++] = field.value;
	return count;
}

/* Outermost first, in both cases. The handler wrote innermost first. */
static void write_frames(struct execpy_result *result, struct json *json, struct span body,
			 bool raw)
{
	struct span list[TRACEBACK_FRAMES_MAX + 1];
	size_t count = frame_list(body, list);

	emit_key(json, "frames");
	emit_begin_array(json);
	for (size_t i = 0; i < count; i++)
		write_frame(result, json, list[raw ? count - 1 - i : i], raw);
	emit_end_array(json);
}

static const char *limit_error_type(enum execpy_status status)
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

static const char *limit_hint(enum execpy_status status)
{
	switch (status) {
	case EXECPY_TIMEOUT:
		return "Make the code finish sooner, or ask for more time; the frames say where it "
		       "stood.";
	case EXECPY_CPU_LIMIT:
		return "Use a cheaper algorithm or less data, or ask for more CPU time; the frames "
		       "say where it stood.";
	case EXECPY_MEMORY_LIMIT:
		return "Work in pieces (chunksize, generators, smaller types), or ask for more "
		       "memory.";
	case EXECPY_OUTPUT_LIMIT:
		return "Print less, write to a file, or ask for a higher output limit.";
	case EXECPY_DISK_LIMIT:
		return "Write less to /workspace and /tmp, or ask for a higher disk limit.";
	case EXECPY_ANOMALY:
		return "The sandbox has no network and starts no programs, and only /workspace and "
		       "/tmp can be written: do without, or write there.";
	case EXECPY_INTERNAL_ERROR:
		return "This is a failure of execpy, not of the code: the run may be tried again.";
	default:
		return NULL;
	}
}

/* The body of the MESSAGE_FRAMES that the handler left, if any. */
static struct span stop_frames(const struct execpy_result *result)
{
	struct reader reader = reader_of(bytes_span(&result->frames));
	struct frame frame;

	if (frame_next(&reader, MAILBOX_FRAMES_BYTES, &frame) == 1 && frame.type == MESSAGE_FRAMES)
		return frame.body;
	return (struct span){NULL, 0};
}

/* Columns that are shown under a line: tabs stay tabs, so that carets fit. */
static void append_carets(struct bytes *out, struct span line, uint32_t from, uint32_t to)
{
	uint32_t column = 1;

	for (size_t i = 0; i < line.length && column < from; i++) {
		if ((line.data[i] & 0xc0) == 0x80)
			continue;
		bytes_append_text(out, line.data[i] == '\t' ? "\t" : " ");
		column++;
	}
	do
		bytes_append_text(out, "^");
	while (++column < to && column < from + 200);
}

void result_refusal_text(const struct execpy_result *result, const struct finding *finding,
			 struct bytes *out)
{
	struct span line = code_line(result, finding->line);

	if (finding->line > 0) {
		bytes_append_format(out, "  File \"main.py\", line %u\n", finding->line);
		if (line.length > 0 && line.length < 500) {
			bytes_append_text(out, "    ");
			bytes_append(out, line.data, line.length);
			bytes_append_text(out, "\n    ");
			append_carets(out, line, finding->column,
				      finding->end_line == finding->line ? finding->end_column : 0);
			bytes_append_text(out, "\n");
		}
	}
	bytes_append_format(out, "%s: %s\n", finding_error_type(finding), finding->message);
}

static void write_refusal(struct execpy_result *result, struct json *json)
{
	const struct finding *cause = verdict_cause(&result->verdict);
	bool security = cause && strcmp(finding_error_type(cause), "SecurityError") == 0;
	autobytes text = {0};
	autobytes frame = {0};

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
		struct span line = code_line(result, cause->line);

		frame_put_text(&frame, FIELD_FILE, "main.py");
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
	const char *type = limit_error_type(result->status);

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
			write_frames(result, json, stop_frames(result), true);
	} else {
		write_text_or(json, "type", result->error, FIELD_TYPE, "Exception");
		write_text_or(json, "message", result->error, FIELD_TEXT, "");
		write_text_or(json, "traceback", result->error, FIELD_TRACEBACK, NULL);
		write_frames(result, json, result->error, false);
	}
	emit_key(json, "hint");
	emit_string(json, limit_hint(result->status));
	emit_end_object(json);
}

static void write_output(struct execpy_result *result, struct json *json)
{
	static const char *const names[] = {"stdout", "stderr"};
	bool lossy = false;
	uint64_t dropped = 0;

	for (size_t i = 0; i < 2; i++) {
		autobytes text = {0};

		capture_text(&result->output[i], &text);
		emit_key(json, names[i]);
		lossy |= emit_text(json, bytes_span(&text));
		dropped += result->output[i].dropped;
	}
	emit_key(json, "output");
	emit_begin_object(json);
	emit_key(json, "stdout_bytes");
	emit_number(json, result->output[0].total);
	emit_key(json, "stderr_bytes");
	emit_number(json, result->output[1].total);
	emit_key(json, "truncated");
	emit_bool(json, dropped > 0);
	emit_key(json, "dropped_bytes");
	emit_number(json, dropped);
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
			emit_key(json, "size");
			emit_number(json, file->size);
			emit_key(json, "media_type");
			emit_string(json, file->media_type);
			emit_key(json, "sha256");
			emit_string(json, file->sha256);
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

static void write_finding(struct json *json, const struct finding *finding)
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

void result_write_findings(struct execpy_result *result, struct json *json)
{
	const char *note = (const char *)result->notes.data;

	emit_key(json, "findings");
	emit_begin_array(json);
	if (result->files_cut)
		write_note(json, "files-incomplete", "warn", result->files_cut,
			   "Put the files into one archive, or leave fewer behind.");
	if (result->fenced)
		write_note(json, rule_infos[RULE_FENCE].id, severity_name(SEVERITY_NOTE),
			   rule_infos[RULE_FENCE].message, rule_infos[RULE_FENCE].hint);
	for (size_t i = 0; i < result->verdict.finding_count; i++)
		write_finding(json, &result->verdict.findings[i]);
	for (size_t at = 0; !result->probe && at < result->notes.length;
	     at += strlen(note + at) + 1)
		write_note(json, "watch", "note", note + at,
			   "The sandbox refused it; under another policy it would have ended the "
			   "run.");
	emit_end_array(json);
}

/* The innermost line of the code itself. */
static uint64_t stop_line(const struct execpy_result *result)
{
	struct span list[TRACEBACK_FRAMES_MAX + 1];
	size_t count = frame_list(stop_frames(result), list);
	struct field field;

	for (size_t i = 0; i < count; i++)
		if (result_find_field(list[i], FIELD_FILE, &field) &&
		    span_equals(field.value, "main.py"))
			return number_field(list[i], FIELD_LINE);
	return 0;
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
			     result->anomaly_line ? result->anomaly_line : stop_line(result));
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
	emit_key(json, "memory_peak_bytes");
	emit_number(json, result->memory_peak_bytes);
	emit_key(json, "processes_peak");
	emit_number(json, result->processes_peak);
	emit_end_object(json);

	emit_key(json, "timing");
	emit_begin_object(json);
	emit_key(json, "wait_ms");
	emit_milliseconds(json, result->wait_us);
	emit_key(json, "verify_ms");
	emit_milliseconds(json, result->verify_us);
	emit_key(json, "run_ms");
	emit_milliseconds(json, result->wall_us);
	emit_key(json, "total_ms");
	emit_milliseconds(json, result->total_us);
	emit_end_object(json);

	emit_key(json, "limits");
	emit_begin_object(json);
	for (size_t i = 0; i < limit_count; i++) {
		emit_key(json, limit_infos[i].name);
		emit_number(json, limit_get(&result->limits, &limit_infos[i]));
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

static void write_result(struct execpy_result *result, struct json *json)
{
	emit_begin_object(json);
	emit_key(json, "id");
	emit_string(json, result->id);
	write_status(result, json);
	write_output(result, json);
	emit_key(json, "value");
	if (result->value.length > 0)
		write_bundle(json, result->value);
	else
		emit_null(json);
	emit_key(json, "displays");
	emit_begin_array(json);
	for (size_t i = 0; i < result->display_count; i++)
		write_bundle(json, result->displays[i]);
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
	emit_key(json, "session");
	emit_null(json);
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
		write_result(result, &json);
		bytes_append(&result->json, "", 1);
	}
	if (result->json.failed)
		return NULL;
	if (ret_length)
		*ret_length = result->json.length - 1;
	return (const char *)result->json.data;
}

bool execpy_result_artifact(const struct execpy_result *result, size_t index,
			    struct execpy_artifact *ret_artifact)
{
	const struct collected_file *file = &result->files[index];

	if (index >= result->file_count)
		return false;
	*ret_artifact = (struct execpy_artifact){file->path, file->refused, file->failed,
						 file->size, file->sha256};
	return true;
}

size_t execpy_result_findings(struct execpy_result *result,
			      const struct execpy_finding **ret_findings)
{
	size_t count = result->verdict.finding_count;

	if (!result->findings)
		result->findings = calloc(count + 1, sizeof *result->findings);
	if (!result->findings)
		return 0;
	for (size_t i = 0; i < count; i++) {
		const struct finding *finding = &result->verdict.findings[i];

		result->findings[i] = (struct execpy_finding){
			.rule = rule_infos[finding->rule].id,
			.severity = severity_name(finding->severity),
			.message = finding->message,
			.hint = finding->hint,
			.line = finding->line,
			.column = finding->column,
			.end_line = finding->end_line,
			.end_column = finding->end_column,
		};
	}
	*ret_findings = result->findings;
	return count;
}

const char *execpy_result_line(const struct execpy_result *result, unsigned line,
			       size_t *ret_length)
{
	struct span span = code_line(result, line);

	*ret_length = span.length;
	return (const char *)span.data;
}

const char *execpy_result_explanation(struct execpy_result *result)
{
	struct bytes *out = &result->explanation;
	const struct finding *cause = verdict_cause(&result->verdict);
	const char *hint = limit_hint(result->status);
	uint64_t line = stop_line(result);

	if (result->status == EXECPY_OK || result->status == EXECPY_ERROR)
		return NULL;
	bytes_clear(out);
	if (result->status == EXECPY_BLOCKED && cause) {
		result_refusal_text(result, cause, out);
		hint = cause->hint[0] ? cause->hint : NULL;
	} else if (result->status == EXECPY_INTERNAL_ERROR) {
		bytes_append_format(out, "execpy: %s (execpy's own failure: try again)\n",
				    result->reason);
		hint = NULL;
	} else {
		bytes_append_format(out, "execpy: %s", result->reason);
		if (line == 0)
			line = result->anomaly_line;
		if (line > 0) {
			struct span text = code_line(result, line);

			bytes_append_format(out, " at line %llu:\n    %.*s",
					    (unsigned long long)line, (int)text.length,
					    (const char *)text.data);
		}
		bytes_append_text(out, "\n");
	}
	if (hint)
		bytes_append_format(out, "hint: %s\n", hint);
	bytes_append(out, "", 1);
	return out->failed ? NULL : (const char *)out->data;
}

void execpy_result_free(struct execpy_result *result)
{
	if (!result)
		return;
	for (size_t i = 0; i < 2; i++)
		capture_free(&result->output[i]);
	for (size_t i = 0; i < result->file_count; i++) {
		free(result->files[i].path);
		free(result->files[i].refused);
		bytes_free(&result->files[i].content);
	}
	free(result->files);
	verdict_free(&result->verdict);
	free(result->files_cut);
	free(result->anomaly_event);
	free(result->anomaly_detail);
	bytes_free(&result->notes);
	free(result->displays);
	free(result->policy);
	free(result->template);
	bytes_free(&result->response);
	bytes_free(&result->frames);
	bytes_free(&result->code);
	bytes_free(&result->json);
	bytes_free(&result->explanation);
	bytes_free(&result->probe_text);
	bytes_free(&result->samples);
	free(result->findings);
	free(result);
}
