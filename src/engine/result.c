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
#include "base/clock.h"
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

uint64_t result_number_field(struct span body, enum field_name name)
{
	struct field field;
	uint64_t number = 0;

	if (result_find_field(body, name, &field))
		field_number(&field, &number);
	return number;
}

static bool take_verdict(struct execpy_result *result, struct reader *frames)
{
	struct error err = {0};
	struct frame frame;
	struct field field;
	int r = frame_next(frames, VERDICT_BYTES_MAX, &frame);

	if (r == 0)
		return false;
	if (r != 1 || frame.type != MESSAGE_VERDICT ||
	    !result_find_field(frame.body, FIELD_FINDINGS, &field) ||
	    verdict_decode(field.value, &result->verdict, &err) < 0) {
		snprintf(result->internal, sizeof result->internal,
			 "the verdict cannot be read: %.200s", err.text);
		return false;
	}
	result->has_verdict = true;
	result->verify_us = result_number_field(frame.body, FIELD_VERIFY_US);
	return true;
}

/* Written before user code, and out of its reach since: one a code. */
static void take_verdicts(struct run *run)
{
	struct batch *batch = run->batch;
	autobytes bytes = {0};
	struct error err = {0};
	struct reader frames;

	if (verdict_read(run->verdict, &bytes, &err) < 0)
		return;
	frames = reader_of(bytes_span(&bytes));
	if (!take_verdict(run->result, &frames))
		return;
	while (batch && batch->judged < batch->count &&
	       take_verdict(batch->results[batch->judged], &frames))
		batch->judged++;
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
	result->anomaly_line = result_number_field(body, FIELD_LINE);
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
	uint64_t number = result_number_field(run->result->error, FIELD_ERRNO);

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
	case ENDING_TIME:
	case ENDING_CPU:
	case ENDING_MEMORY:
		break;
	default:
		return EXECPY_INTERNAL_ERROR;
	}
	/* What came behind it, in a batch, does not touch it. */
	if (run->result->has_verdict)
		return run->result->verdict.blocked ? EXECPY_BLOCKED : EXECPY_OK;
	switch (run->ending) {
	case ENDING_EXITED:
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

/* A verdict that came along in a batch; its run told everything else. */
static void finish_member(struct execpy_result *member)
{
	member->status = member->verdict.blocked ? EXECPY_BLOCKED : EXECPY_OK;
	explain(member);
}

void result_finish(struct run *run)
{
	struct execpy_result *result = run->result;
	struct error err = {0};

	if (run->mailbox >= 0) {
		result->response.ceiling = RESPONSE_BYTES_MAX;
		mailbox_read_response(run->mailbox, &result->response, &err);
		mailbox_read_frames(run->mailbox, &result->frames, &err);
		take_verdicts(run);
		result_index(result);
	}
	result->total_us = (uint64_t)(now_us() - run->began_us);
	/* The warden starts a run without waiting for us, who may hear of it late. */
	if (result->wall_us > result->total_us)
		result->wait_us = 0;
	else if (result->wait_us > result->total_us - result->wall_us)
		result->wait_us = result->total_us - result->wall_us;
	if (result->lost.length > 0)
		result->lost.data[result->lost.length - 1] = '\0'; /* the last newline */
	result->status = decide(run);
	explain(result);
	for (size_t i = 0; run->batch && i < run->batch->judged; i++)
		finish_member(run->batch->results[i]);
}

void result_file_name(const struct execpy_result *result, char name[32])
{
	if (result->session[0])
		snprintf(name, 32, "<run %llu>", (unsigned long long)result->session_run);
	else
		snprintf(name, 32, "main.py");
}

bool result_is_own_file(const struct execpy_result *result, struct span file)
{
	char name[32];

	result_file_name(result, name);
	return span_equals(file, name);
}

struct span result_code_line(const struct execpy_result *result, uint64_t number)
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

size_t result_frame_list(struct span body, struct span list[TRACEBACK_FRAMES_MAX])
{
	struct reader fields = reader_of(body);
	struct field field;
	size_t count = 0;

	while (count < TRACEBACK_FRAMES_MAX + 1u && frame_next_field(&fields, &field) == 1)
		if (field.name == FIELD_FRAME && count < TRACEBACK_FRAMES_MAX)
			list[count++] = field.value;
	return count;
}

/* The body of the MESSAGE_FRAMES that the handler left, if any. */
struct span result_stop_frames(const struct execpy_result *result)
{
	struct reader reader = reader_of(bytes_span(&result->frames));
	struct frame frame;

	if (frame_next(&reader, MAILBOX_FRAMES_BYTES, &frame) == 1 && frame.type == MESSAGE_FRAMES)
		return frame.body;
	return (struct span){NULL, 0};
}

/* The innermost line of the code itself. */
uint64_t result_stop_line(const struct execpy_result *result)
{
	struct span list[TRACEBACK_FRAMES_MAX + 1];
	size_t count = result_frame_list(result_stop_frames(result), list);
	struct field field;

	for (size_t i = 0; i < count; i++)
		if (result_find_field(list[i], FIELD_FILE, &field) &&
		    result_is_own_file(result, field.value))
			return result_number_field(list[i], FIELD_LINE);
	return 0;
}

uint64_t result_bytes(const struct execpy_result *result)
{
	uint64_t bytes = sizeof *result + result->response.capacity + result->frames.capacity +
			 result->code.capacity + result->json.capacity;

	for (size_t i = 0; i < 2; i++)
		bytes += result->output[i].head.capacity + result->output[i].tail.capacity;
	for (size_t i = 0; i < result->file_count; i++)
		bytes += sizeof result->files[i] + result->files[i].content.capacity;
	return bytes;
}

void execpy_result_free(struct execpy_result *result)
{
	if (!result)
		return;
	for (size_t i = 0; i < 2; i++)
		capture_free(&result->output[i]);
	files_free(result);
	bytes_free(&result->lost);
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
