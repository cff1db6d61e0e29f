/* SPDX-License-Identifier: Apache-2.0 */
/* piston: the API of Piston, version 2: one run of a few files.
 *
 * The first file that is text is the program. `status` of what it answers:
 *
 *   null   it ended with 0
 *   RE     it ended otherwise, or was refused, which ran nothing: code 126
 *   SG     a signal ended it; also ours, for its memory, disk or behaviour
 *   TO     the time, or the processor time, was over
 *   OL EL  there was too much output, most of it on stdout or on stderr
 *   XX     we failed */
#include "server/compat/compat.h"

#include "base/cleanup.h"
#include "server/compat/version.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

struct piston_call {
	struct rest_call call;
	struct bytes both; /* stdout and stderr as they came */
	struct bytes errors;
};

static void release(struct rest_call *call)
{
	struct piston_call *piston = (struct piston_call *)call;

	bytes_free(&piston->both);
	bytes_free(&piston->errors);
}

static void say_no(struct exchange *exchange, unsigned status, const char *text)
{
	struct bytes body = {0};
	struct json json = {.out = &body};

	emit_begin_object(&json);
	emit_key(&json, "message");
	emit_string(&json, text);
	emit_end_object(&json);
	exchange_respond(exchange, status, "application/json", &body);
}

/* --- the answer -------------------------------------------------------------------- */

static const char *status_of(const struct execpy_result *result)
{
	switch (result->status) {
	case EXECPY_OK:
		return NULL;
	case EXECPY_ERROR:
	case EXECPY_BLOCKED:
		return "RE";
	case EXECPY_TIMEOUT:
	case EXECPY_CPU_LIMIT:
		return "TO";
	case EXECPY_OUTPUT_LIMIT:
		return result->output[1].total > result->output[0].total ? "EL" : "OL";
	case EXECPY_ANOMALY:
	case EXECPY_MEMORY_LIMIT:
	case EXECPY_CRASHED:
		return "SG";
	case EXECPY_DISK_LIMIT:
		return result->signal ? "SG" : "RE";
	case EXECPY_CANCELLED:
	case EXECPY_INTERNAL_ERROR:
	default:
		return "XX";
	}
}

static void write_ending(const struct execpy_result *result, struct json *json)
{
	const char *name = result->signal ? sigabbrev_np(result->signal) : NULL;
	int code = result->status == EXECPY_BLOCKED ? 126 : result->exit_code;
	char text[32];

	emit_key(json, "code");
	if (code >= 0 && !result->signal)
		emit_number(json, (uint64_t)code);
	else
		emit_null(json);
	snprintf(text, sizeof text, "SIG%s", name ? name : "UNKNOWN");
	emit_key(json, "signal");
	emit_string(json, result->signal ? text : NULL);
	emit_key(json, "status");
	emit_string(json, status_of(result));
	emit_key(json, "message");
	emit_string(json, execpy_result_reason(result));
}

static void write_run(struct piston_call *piston, struct json *json)
{
	struct execpy_result *result = piston->call.result;
	struct span output[JSON_SPANS_MAX] = {0}, both[JSON_SPANS_MAX] = {0};
	size_t told;

	compat_stderr(result, &piston->errors);
	capture_spans(&result->output[0], output);
	/* What stderr has beyond what the code wrote there. */
	told = result->output[1].head.length;
	both[0] = bytes_span(&piston->both);
	both[1] = (struct span){piston->errors.data + told, piston->errors.length - told};
	emit_key(json, "run");
	emit_begin_object(json);
	emit_key(json, "stdout");
	emit_pieces(json, output);
	emit_key(json, "stderr");
	emit_text(json, bytes_span(&piston->errors));
	emit_key(json, "output");
	emit_pieces(json, both);
	write_ending(result, json);
	emit_count(json, "memory", result->memory_peak_bytes);
	emit_count(json, "cpu_time", result->cpu_us / 1000);
	emit_count(json, "wall_time", result->wall_us / 1000);
	emit_end_object(json);
}

static void on_output(void *user, enum execpy_stream stream, const void *data, size_t length)
{
	struct piston_call *piston = user;
	size_t room = piston->both.ceiling - piston->both.length;

	bytes_append(&piston->both, data, length < room ? length : room);
}

static void on_done(void *user, struct execpy_result *result, const struct error *why)
{
	struct piston_call *piston = user;
	struct rest_call *call = &piston->call;
	struct json json = json_stream_writer(&call->stream);

	if (!rest_take_result(call, result, why))
		return;
	emit_begin_object(&json);
	emit_key(&json, "language");
	emit_string(&json, "python");
	emit_key(&json, "version");
	emit_string(&json, PYTHON_VERSION);
	write_run(piston, &json);
	emit_end_object(&json);
	compat_send(call);
}

/* --- the request ------------------------------------------------------------------- */

static int take_language(const json_t *object, struct error *err)
{
	const char *language = NULL, *version = NULL;
	int r = ask_text(object, "", "language", &language, err);

	if (r == 0)
		r = ask_text(object, "", "version", &version, err);
	if (r < 0)
		return r;
	if (!language || !version)
		return refuse(err, EINVAL, "%s is required as a string",
			      language ? "version" : "language");
	if (!compat_is_python(language) || !version_matches(version, PYTHON_VERSION))
		return refuse(err, EINVAL, "%.40s-%.40s runtime is unknown", language, version);
	return 0;
}

/* A limit of a stage: nothing, or what is not positive, asks for none. */
static int take_limit(const json_t *object, const char *key, uint64_t least, uint64_t most,
		      uint64_t *limit, struct error *err)
{
	const json_t *value = json_object_get(object, key);
	double number = json_number_value(value);

	if (value && !json_is_number(value))
		return refuse(err, EINVAL, "%s must be a number", key);
	if (!value || number <= 0)
		return 0;
	if (number > (double)most)
		return refuse(err, EINVAL, "%s cannot exceed the configured limit of %llu", key,
			      (unsigned long long)most);
	*limit = compat_within((uint64_t)number, least, most);
	return 0;
}

static int take_limits(struct rest_call *call, struct error *err)
{
	const struct ask_rules rules = compat_rules(call);
	const struct {
		const char *key, *limit;
	} keys[] = {{"run_timeout", "time_ms"},
		    {"run_cpu_time", "cpu_ms"},
		    {"run_memory_limit", "memory_bytes"}};
	struct limits limits = rules.initial;

	limits.time_ms = compat_within(COMPAT_PISTON_TIME_MS, 0, rules.ceilings.time_ms);
	limits.cpu_ms = 0;
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		const struct limit_info *info = limit_find(keys[i].limit);

		if (take_limit(call->ask.document, keys[i].key, info->least,
			       limit_get(&rules.ceilings, info), limit_at(&limits, info), err) < 0)
			return -err->number;
	}
	if (limits.cpu_ms == 0)
		limits.cpu_ms = compat_within(limits.time_ms, 0, rules.ceilings.cpu_ms);
	call->ask.request.limits = ask_to_engine(&limits);
	((struct piston_call *)call)->both.ceiling = (size_t)limits.output_bytes;
	return 0;
}

static int encoding_of(const json_t *file, enum ask_encoding *ret_encoding, struct error *err)
{
	static const char *const names[] = {
		[ASK_TEXT] = "utf8", [ASK_BASE64] = "base64", [ASK_HEX] = "hex"};
	const char *name = "utf8";
	int r = ask_text(file, "", "encoding", &name, err);

	for (size_t i = 0; r == 0 && i < ARRAY_LENGTH(names); i++)
		if (strcmp(names[i], name) == 0) {
			*ret_encoding = (enum ask_encoding)i;
			return 0;
		}
	return r < 0 ? r : refuse(err, EINVAL, "encoding must be utf8, base64 or hex");
}

/* The first text is the program; it is a file, too, when it has a name. */
static int take_file(struct ask *ask, json_t *file, bool *has_code, struct error *err)
{
	const json_t *content = json_object_get(file, "content");
	enum ask_encoding encoding = ASK_TEXT;
	const char *name = NULL;
	bool is_code;
	int r;

	if (!json_is_object(file) || !json_is_string(content))
		return refuse(err, EINVAL, "content is required as a string");
	compat_drop_nulls(file);
	if ((r = encoding_of(file, &encoding, err)) < 0 ||
	    (r = ask_text(file, "", "name", &name, err)) < 0)
		return r;
	is_code = encoding == ASK_TEXT && !*has_code;
	if (is_code) {
		*has_code = true;
		ask->request.code = json_string_value(content);
		ask->request.code_length = json_string_length(content);
	}
	return name ? ask_add_file(ask, name, content, encoding, err) : 0;
}

/* As Piston names what has no name. */
static int name_others(json_t *files, struct error *err)
{
	json_t *file;
	size_t index;

	json_array_foreach(files, index, file)
	{
		if (index > 0 && json_is_object(file) &&
		    !json_is_string(json_object_get(file, "name")) &&
		    json_object_set_new(file, "name", json_sprintf("file%zu.code", index)) < 0)
			return fail(err, ENOMEM, "files");
	}
	return 0;
}

static int take_files(struct ask *ask, struct error *err)
{
	json_t *files = json_object_get(ask->document, "files"), *file;
	bool has_code = false;
	size_t index;

	if (!json_is_array(files) || json_array_size(files) > REST_FILES_MAX)
		return refuse(err, EINVAL, "files is required as an array of at most %d",
			      REST_FILES_MAX);
	if (ask_begin_files(ask, json_array_size(files), err) < 0 || name_others(files, err) < 0)
		return -err->number;
	json_array_foreach(files, index, file)
	{
		if (take_file(ask, file, &has_code, err) < 0)
			return fail_wrap(err, "files[%zu]", index);
	}
	return has_code ? 0 : refuse(err, EINVAL, "files must include one with encoding utf8");
}

static void handle_execute(struct exchange *exchange)
{
	struct piston_call *piston = (struct piston_call *)rest_call_new(exchange, sizeof *piston);
	struct rest_call *call = &piston->call;
	const struct async async = {.callbacks = {.output = on_output, .user = piston},
				    .done = on_done,
				    .user = piston};
	struct error err = {0};

	if (!piston)
		return;
	call->release = release;
	call->refuse = say_no;
	call->ran_as = "piston execute";
	if (!rest_read(call, false))
		return;
	compat_drop_nulls(call->ask.document);
	call->ask.request.policy = compat_policy(call);
	if (take_language(call->ask.document, &err) < 0 || take_limits(call, &err) < 0 ||
	    ask_stdin(&call->ask, call->ask.document, &err) < 0 ||
	    ask_arguments(&call->ask, call->ask.document, &err) < 0 ||
	    take_files(&call->ask, &err) < 0) {
		rest_fail(call, &err);
		return;
	}
	if (!rest_take_slot(call))
		return;
	rest_begin(call, &call->ask.request, &async);
}

static void handle_runtimes(struct exchange *exchange)
{
	static const char text[] = "[{\"language\":\"python\",\"version\":\"" PYTHON_VERSION
				   "\",\"aliases\":[\"py\",\"py3\",\"python3\"]}]";
	struct bytes body = {0};

	bytes_append_text(&body, text);
	exchange_respond(exchange, 200, "application/json", &body);
}

static const struct route routes[] = {
	{"GET", "/api/v2/runtimes", ROUTE_NO_BODY, 0, false, handle_runtimes},
	{"POST", "/api/v2/execute", ROUTE_TEXT, REST_BODY_BYTES_MAX, false, handle_execute},
	{0},
};

const struct server_part piston_part = {.name = "piston", .compat = "piston", .routes = routes};
