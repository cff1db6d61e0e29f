/* SPDX-License-Identifier: Apache-2.0 */
/* fusion: SandboxFusion's POST /run_code: one run, and what became of it.
 *
 *   status       Success: it ended with 0. Failed: it did not. SandboxError: we failed
 *   run_result   Finished, TimeLimitExceeded or Error; return_code as a parent process
 *                sees it: negative for a signal, 126 when the code was refused */
#include "server/compat/compat.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct fusion_call {
	struct rest_call call;
	struct bytes errors;
};

static void release(struct rest_call *call)
{
	bytes_free(&((struct fusion_call *)call)->errors);
}

/* --- the answer -------------------------------------------------------------------- */

static bool is_time_limit(const struct execpy_result *result)
{
	return result->status == EXECPY_TIMEOUT || result->status == EXECPY_CPU_LIMIT;
}

static bool is_our_failure(const struct execpy_result *result)
{
	return result->status == EXECPY_INTERNAL_ERROR || result->status == EXECPY_CANCELLED;
}

static void write_return_code(const struct execpy_result *result, struct json *json)
{
	char text[16];

	emit_key(json, "return_code");
	if (is_time_limit(result) || is_our_failure(result)) {
		emit_null(json);
		return;
	}
	snprintf(text, sizeof text, "%d",
		 result->status == EXECPY_BLOCKED ? 126
		 : result->signal                 ? -result->signal
						  : result->exit_code);
	emit_raw(json, (struct span){(const uint8_t *)text, strlen(text)});
}

static void write_run(struct fusion_call *fusion, struct json *json)
{
	struct execpy_result *result = fusion->call.result;
	struct span output[JSON_SPANS_MAX] = {0};
	char seconds[40];
	int length = snprintf(seconds, sizeof seconds, "%llu.%06llu",
			      (unsigned long long)(result->wall_us / 1000000),
			      (unsigned long long)(result->wall_us % 1000000));

	compat_stderr(result, &fusion->errors);
	capture_spans(&result->output[0], output);
	emit_key(json, "run_result");
	emit_begin_object(json);
	emit_key(json, "status");
	emit_string(json, is_time_limit(result)    ? "TimeLimitExceeded"
			  : is_our_failure(result) ? "Error"
						   : "Finished");
	emit_key(json, "execution_time");
	emit_raw(json, (struct span){(const uint8_t *)seconds, (size_t)length});
	write_return_code(result, json);
	emit_key(json, "stdout");
	emit_pieces(json, output);
	emit_key(json, "stderr");
	emit_text(json, bytes_span(&fusion->errors));
	emit_end_object(json);
}

static const struct collected_file *find_created(const struct execpy_result *result,
						 const char *path)
{
	for (size_t i = 0; i < result->file_count; i++)
		if (!result->files[i].refused && strcmp(result->files[i].path, path) == 0)
			return &result->files[i];
	return NULL;
}

/* A member's name is the client's own text. */
static void emit_text_key(struct json *json, const char *key)
{
	emit_string(json, key);
	bytes_append_text(json->out, ":");
	json->comma = false;
}

static bool is_again(const json_t *list, size_t index)
{
	const char *text = json_string_value(json_array_get(list, index));

	for (size_t i = 0; i < index; i++)
		if (strcmp(json_string_value(json_array_get(list, i)), text) == 0)
			return true;
	return false;
}

/* Those that were asked for and are there, in base64; what was put in and did not change
 * is what was put in. */
static void write_files(struct fusion_call *fusion, struct json *json)
{
	const json_t *given = json_object_get(fusion->call.ask.document, "files"), *entry;
	const json_t *wanted = json_object_get(fusion->call.ask.document, "fetch_files");
	size_t index;

	emit_key(json, "files");
	emit_begin_object(json);
	json_array_foreach(wanted, index, entry)
	{
		const char *path = json_string_value(entry);
		const char *name = strncmp(path, "./", 2) == 0 ? path + 2 : path;
		const struct collected_file *file = find_created(fusion->call.result, name);
		const char *before = json_string_value(json_object_get(given, name));

		if ((!file && !before) || is_again(wanted, index))
			continue;
		emit_text_key(json, path);
		if (file)
			emit_base64(json, bytes_span(&file->content));
		else
			emit_string(json, before);
	}
	emit_end_object(json);
}

static void on_done(void *user, struct execpy_result *result, const struct error *why)
{
	struct fusion_call *fusion = user;
	struct rest_call *call = &fusion->call;
	struct json json = json_stream_writer(&call->stream);
	const char *reason = result ? execpy_result_reason(result) : NULL;

	if (!rest_take_result(call, result, why))
		return;
	emit_begin_object(&json);
	emit_key(&json, "status");
	emit_string(&json, is_our_failure(result)        ? "SandboxError"
			   : result->status == EXECPY_OK ? "Success"
							 : "Failed");
	emit_key(&json, "message");
	emit_string(&json, reason ? reason : "");
	emit_key(&json, "compile_result");
	emit_null(&json);
	write_run(fusion, &json);
	emit_key(&json, "executor_pod_name");
	emit_null(&json);
	write_files(fusion, &json);
	emit_end_object(&json);
	compat_send(call);
}

/* --- the request ------------------------------------------------------------------- */

/* A number as JSON has it, times `scale`; what is missing or negative is `otherwise`. */
static int take_number(const json_t *object, const char *key, double scale, double otherwise,
		       double *ret_number, struct error *err)
{
	const json_t *value = json_object_get(object, key);

	*ret_number = otherwise * scale;
	if (!value)
		return 0;
	if (!json_is_number(value))
		return refuse(err, EINVAL, "%s must be a number", key);
	if (json_number_value(value) >= 0)
		*ret_number = json_number_value(value) * scale;
	return 0;
}

/* Far beyond any limit, and within an integer. */
static uint64_t whole(double number)
{
	return number < 1e15 ? (uint64_t)number : (uint64_t)1e15;
}

static int take_limits(struct rest_call *call, struct error *err)
{
	const json_t *object = call->ask.document;
	const struct ask_rules rules = compat_rules(call);
	struct limits limits = rules.initial;
	double time_ms, memory;

	if (take_number(object, "run_timeout", 1000, COMPAT_FUSION_TIME_MS / 1000.0, &time_ms,
			err) < 0 ||
	    take_number(object, "memory_limit_MB", (double)MIB,
			(double)limits.memory_bytes / (double)MIB, &memory, err) < 0)
		return -err->number;
	limits.time_ms =
		compat_within(whole(time_ms), limit_find("time_ms")->least, rules.ceilings.time_ms);
	limits.cpu_ms =
		compat_within(limits.time_ms, limit_find("cpu_ms")->least, rules.ceilings.cpu_ms);
	limits.memory_bytes = compat_within(whole(memory), limit_find("memory_bytes")->least,
					    rules.ceilings.memory_bytes);
	call->ask.request.limits = ask_to_engine(&limits);
	return 0;
}

static int take_files(struct ask *ask, struct error *err)
{
	json_t *files = json_object_get(ask->document, "files"), *content;
	const char *path;

	if (!files)
		return 0;
	compat_drop_nulls(files);
	if (!json_is_object(files) || json_object_size(files) > REST_FILES_MAX)
		return refuse(err, EINVAL, "files must be an object of at most %d texts",
			      REST_FILES_MAX);
	if (ask_begin_files(ask, json_object_size(files), err) < 0)
		return -err->number;
	json_object_foreach(files, path, content)
	{
		if (!json_is_string(content))
			return refuse(err, EINVAL, "files: %.60s must be a text of base64", path);
		if (ask_add_file(ask, path, content, ASK_BASE64, err) < 0)
			return fail_wrap(err, "files: %.60s", path);
	}
	return 0;
}

static int take_wanted(struct ask *ask, struct error *err)
{
	const json_t *wanted = json_object_get(ask->document, "fetch_files"), *entry;
	size_t index;

	if (!wanted)
		return 0;
	if (!json_is_array(wanted) || json_array_size(wanted) > REST_FILES_MAX)
		return refuse(err, EINVAL, "fetch_files must be a list of at most %d",
			      REST_FILES_MAX);
	json_array_foreach(wanted, index, entry)
	{
		if (!json_is_string(entry))
			return refuse(err, EINVAL, "fetch_files[%zu] must be a text", index);
	}
	ask->request.return_files = json_array_size(wanted) > 0;
	return 0;
}

static void handle_run_code(struct exchange *exchange)
{
	struct fusion_call *fusion = (struct fusion_call *)rest_call_new(exchange, sizeof *fusion);
	struct rest_call *call = &fusion->call;
	const struct async async = {.done = on_done, .user = fusion};
	const char *language = NULL;
	struct error err = {0};

	if (!fusion)
		return;
	call->release = release;
	call->ran_as = "fusion run_code";
	if (!rest_read(call, false))
		return;
	compat_drop_nulls(call->ask.document);
	call->ask.request.policy = compat_policy(call);
	if (ask_text(call->ask.document, "", "language", &language, &err) < 0 ||
	    ask_code(&call->ask, call->ask.document, &err) < 0 || take_limits(call, &err) < 0 ||
	    ask_stdin(&call->ask, call->ask.document, &err) < 0 ||
	    take_wanted(&call->ask, &err) < 0 || take_files(&call->ask, &err) < 0) {
		rest_problem(call, err.number == EINVAL ? 422 : rest_status(err.number), "%s",
			     err.text);
		return;
	}
	if (!language || !compat_is_python(language)) {
		rest_problem(call, 422, "language must be \"python\"");
		return;
	}
	if (!rest_take_slot(call))
		return;
	rest_begin(call, &call->ask.request, &async);
}

static const struct route routes[] = {
	{"POST", "/run_code", ROUTE_TEXT, REST_BODY_BYTES_MAX, false, handle_run_code},
	{0},
};

const struct server_part fusion_part = {.name = "fusion", .compat = "fusion", .routes = routes};
