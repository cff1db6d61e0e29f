/* SPDX-License-Identifier: Apache-2.0 */
/* ask: see ask.h. */
#include "server/ask.h"

#include "base/bounds.h"
#include "base/cleanup.h"
#include "base/memfile.h"
#include "policy/policy.h"

#include <errno.h>
#include <nettle/base16.h>
#include <nettle/base64.h>
#include <string.h>

bool ask_is_modest(struct span text)
{
	size_t count = 0;
	bool quoted = false;

	for (size_t i = 0; i < text.length; i++) {
		uint8_t byte = text.data[i];

		if (quoted && byte == '\\')
			i++;
		else if (byte == '"')
			quoted = !quoted;
		else if (!quoted && (byte == ',' || byte == '[' || byte == '{') &&
			 ++count > JSON_VALUES_MAX)
			return false;
	}
	return true;
}

json_t *ask_read(struct span text, struct error *err)
{
	json_error_t wrong;
	json_t *document;

	if (!ask_is_modest(text)) {
		refuse(err, EINVAL, "the body has more than %d values", JSON_VALUES_MAX);
		return NULL;
	}
	document = json_loadb((const char *)text.data, text.length,
			      JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &wrong);

	if (!document) {
		refuse(err, EINVAL, "the body is not JSON: %.150s (line %d, column %d)", wrong.text,
		       wrong.line, wrong.column);
	} else if (!json_is_object(document)) {
		json_decref(document);
		document = NULL;
		refuse(err, EINVAL, "the body must be one JSON object");
	}
	return document;
}

int ask_known(const json_t *object, const char *where, const char *const *keys, struct error *err)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value)
	{
		size_t at = 0;

		while (keys[at] && strcmp(keys[at], key) != 0)
			at++;
		if (!keys[at])
			return refuse(err, EINVAL, "\"%s%.60s\" is no key of this request", where,
				      key);
	}
	return 0;
}

static bool is_plain_text(const json_t *value)
{
	return json_is_string(value) &&
	       strlen(json_string_value(value)) == json_string_length(value);
}

int ask_text(const json_t *object, const char *where, const char *key, const char **ret_text,
	     struct error *err)
{
	const json_t *value = json_object_get(object, key);

	if (!value)
		return 0;
	if (!is_plain_text(value))
		return refuse(err, EINVAL, "%s%s must be a text", where, key);
	*ret_text = json_string_value(value);
	return 0;
}

int ask_flag(const json_t *object, const char *where, const char *key, bool *ret_flag,
	     struct error *err)
{
	const json_t *value = json_object_get(object, key);

	if (!value)
		return 0;
	if (!json_is_boolean(value))
		return refuse(err, EINVAL, "%s%s must be true or false", where, key);
	*ret_flag = json_is_true(value);
	return 0;
}

int ask_number(const json_t *object, const char *where, const char *key, uint64_t least,
	       uint64_t most, uint64_t *ret_number, struct error *err)
{
	const json_t *value = json_object_get(object, key);
	json_int_t number = json_integer_value(value);

	if (!value)
		return 0;
	if (!json_is_integer(value) || number < 0 || (uint64_t)number < least ||
	    (uint64_t)number > most)
		return refuse(err, EINVAL, "%s%s must be an integer from %llu to %llu", where, key,
			      (unsigned long long)least, (unsigned long long)most);
	*ret_number = (uint64_t)number;
	return 0;
}

/* --- limits and policies --------------------------------------------------------- */

/* In the order of the table. */
static uint64_t *public_limit(struct execpy_limits *limits, size_t index)
{
	uint64_t *const fields[] = {&limits->time_ms,      &limits->cpu_ms,
				    &limits->memory_bytes, &limits->processes,
				    &limits->output_bytes, &limits->disk_bytes};

	return fields[index];
}

struct execpy_limits ask_to_engine(const struct limits *limits)
{
	struct execpy_limits public = {0};

	for (size_t i = 0; i < limit_count; i++) {
		uint64_t value = limit_get(limits, &limit_infos[i]);

		*public_limit(&public, i) = value == 0 ? UINT64_MAX : value;
	}
	return public;
}

void ask_lower(struct limits *limits, const struct execpy_limits *ceilings)
{
	struct execpy_limits most = *ceilings;

	for (size_t i = 0; i < limit_count; i++) {
		uint64_t *limit = limit_at(limits, &limit_infos[i]);

		if (*public_limit(&most, i) && *limit > *public_limit(&most, i))
			*limit = *public_limit(&most, i);
	}
}

static bool is_the_sessions(const char *name)
{
	return strcmp(name, "memory_bytes") == 0 || strcmp(name, "processes") == 0 ||
	       strcmp(name, "disk_bytes") == 0;
}

int ask_limits(const json_t *object, const char *where, const struct ask_rules *rules,
	       struct execpy_limits *ret_limits, struct error *err)
{
	struct execpy_limits limits = {0};
	uint64_t most_cpu = rules->ceilings.cpu_ms;

	/* A session has its own, also for what is not named. */
	if (!rules->in_session)
		limits = ask_to_engine(&rules->initial);
	for (size_t i = 0; i < limit_count; i++) {
		const struct limit_info *info = &limit_infos[i];
		uint64_t *limit = public_limit(&limits, i);
		int r;

		if (!json_object_get(object, info->name))
			continue;
		if (rules->in_session && is_the_sessions(info->name))
			return refuse(err, EINVAL,
				      "%s%s is the session's own: it is set when it is created",
				      where, info->name);
		r = ask_number(object, where, info->name, info->least,
			       limit_get(&rules->ceilings, info), limit, err);
		if (r < 0)
			return r;
		if (*limit == 0)
			*limit = UINT64_MAX;
	}
	/* Who asks for time wants to use it. */
	if (json_object_get(object, "time_ms") && !json_object_get(object, "cpu_ms") &&
	    limits.time_ms > limits.cpu_ms)
		limits.cpu_ms = limits.time_ms < most_cpu ? limits.time_ms : most_cpu;
	*ret_limits = limits;
	return 0;
}

int ask_policy(const json_t *object, const struct ask_rules *rules, const char **ret_policy,
	       struct error *err)
{
	struct policy known;
	const char *name = NULL;
	int r = ask_text(object, "", "policy", &name, err);

	if (r < 0)
		return r;
	if (!name) {
		if (!rules->in_session && rules->policies)
			*ret_policy = rules->policies[0];
		return 0;
	}
	*ret_policy = name;
	for (char **policy = rules->policies; policy && *policy; policy++)
		if (strcmp(*policy, name) == 0)
			return 0;
	/* Names only: no file of this host is opened for a client. */
	if (rules->policies || policy_find(name, &known) < 0)
		return refuse(err, EINVAL, "policy: \"%.60s\" is none that you may name", name);
	policy_free(&known);
	return 0;
}

/* --- a request ------------------------------------------------------------------- */

void ask_init(struct ask *ask)
{
	*ask = (struct ask){.request = {.code = "", .stdin_fd = -1, .out_directory = -1}};
}

void ask_free(struct ask *ask)
{
	for (size_t i = 0; i < ask->request.file_count; i++)
		close(ask->files[i].fd);
	for (char **pair = ask->environment; pair && *pair; pair++)
		free(*pair);
	if (ask->request.stdin_fd >= 0)
		close(ask->request.stdin_fd);
	free(ask->files);
	free(ask->arguments);
	free(ask->environment);
	json_decref(ask->document);
	ask_init(ask);
}

int ask_code(struct ask *ask, const json_t *object, struct error *err)
{
	const json_t *code = json_object_get(object, "code");

	if (!code)
		return refuse(err, EINVAL, "code is missing: the Python code, a text");
	if (!json_is_string(code))
		return refuse(err, EINVAL, "code must be a text: the Python code");
	ask->request.code = json_string_value(code);
	ask->request.code_length = json_string_length(code);
	return 0;
}

static int text_file(const json_t *text, const char *what, struct error *err)
{
	const struct span content = {(const uint8_t *)json_string_value(text),
				     json_string_length(text)};

	return memfile_write(what, content, err);
}

int ask_stdin(struct ask *ask, const json_t *object, struct error *err)
{
	const json_t *text = json_object_get(object, "stdin");

	if (!text)
		return 0;
	if (!json_is_string(text))
		return refuse(err, EINVAL, "stdin must be a text");
	ask->request.stdin_fd = text_file(text, "stdin", err);
	return ask->request.stdin_fd < 0 ? ask->request.stdin_fd : 0;
}

static bool decode_base64(const json_t *text, uint8_t *data, size_t *ret_length)
{
	struct base64_decode_ctx context;

	base64_decode_init(&context);
	return base64_decode_update(&context, ret_length, data, json_string_length(text),
				    json_string_value(text)) &&
	       base64_decode_final(&context);
}

static bool decode_hex(const json_t *text, uint8_t *data, size_t *ret_length)
{
	struct base16_decode_ctx context;

	base16_decode_init(&context);
	return base16_decode_update(&context, ret_length, data, json_string_length(text),
				    json_string_value(text)) &&
	       base16_decode_final(&context);
}

static int decoded_file(const json_t *text, enum ask_encoding encoding, struct error *err)
{
	/* Enough for both. */
	autofree uint8_t *data = malloc(BASE64_DECODE_LENGTH(json_string_length(text)) + 1);
	size_t decoded = 0;

	if (!data)
		return fail(err, ENOMEM, "files");
	if (encoding == ASK_BASE64 && !decode_base64(text, data, &decoded))
		return refuse(err, EINVAL, "its content is not base64");
	if (encoding == ASK_HEX && !decode_hex(text, data, &decoded))
		return refuse(err, EINVAL, "its content is not hexadecimal");
	return memfile_write("file", (struct span){data, decoded}, err);
}

int ask_begin_files(struct ask *ask, size_t count, struct error *err)
{
	ask->files = calloc(count + 1, sizeof *ask->files);
	if (!ask->files)
		return fail(err, ENOMEM, "files");
	ask->request.files = ask->files;
	return 0;
}

int ask_add_file(struct ask *ask, const char *path, const json_t *content,
		 enum ask_encoding encoding, struct error *err)
{
	struct execpy_file *file = &ask->files[ask->request.file_count];

	*file = (struct execpy_file){.name = path};
	file->fd = encoding == ASK_TEXT ? text_file(content, "file", err)
					: decoded_file(content, encoding, err);
	if (file->fd < 0)
		return -err->number;
	ask->request.file_count++;
	return 0;
}

static int take_file(struct ask *ask, const json_t *entry, struct error *err)
{
	static const char *const keys[] = {"path", "content", "content_base64", NULL};
	const json_t *content = json_object_get(entry, "content");
	const json_t *encoded = json_object_get(entry, "content_base64");
	const char *path = NULL;
	int r;

	if (!json_is_object(entry))
		return refuse(err, EINVAL, "a file is an object with path and content");
	r = ask_known(entry, "", keys, err);
	if (r == 0)
		r = ask_text(entry, "", "path", &path, err);
	if (r < 0)
		return r;
	if (!path)
		return refuse(err, EINVAL, "path is missing");
	if ((content && encoded) || json_is_string(content) == json_is_string(encoded))
		return refuse(err, EINVAL, "give it either content or content_base64, a text");
	return ask_add_file(ask, path, content ? content : encoded, content ? ASK_TEXT : ASK_BASE64,
			    err);
}

int ask_files(struct ask *ask, const json_t *object, size_t most, struct error *err)
{
	const json_t *files = json_object_get(object, "files");
	size_t index;
	json_t *entry;

	if (!files)
		return 0;
	if (!json_is_array(files) || json_array_size(files) > most)
		return refuse(err, EINVAL, "files must be a list of at most %zu", most);
	if (ask_begin_files(ask, json_array_size(files), err) < 0)
		return -err->number;
	json_array_foreach(files, index, entry)
	{
		if (take_file(ask, entry, err) < 0)
			return fail_wrap(err, "files[%zu]", index);
	}
	return 0;
}

int ask_arguments(struct ask *ask, const json_t *object, struct error *err)
{
	const json_t *list = json_object_get(object, "args");
	size_t index;
	json_t *text;

	if (!list)
		return 0;
	if (!json_is_array(list) || json_array_size(list) > ARGUMENT_COUNT_MAX)
		return refuse(err, EINVAL, "args must be a list of at most %d", ARGUMENT_COUNT_MAX);
	ask->arguments = calloc(json_array_size(list) + 1, sizeof *ask->arguments);
	if (!ask->arguments)
		return fail(err, ENOMEM, "args");
	json_array_foreach(list, index, text)
	{
		if (!is_plain_text(text))
			return refuse(err, EINVAL, "args[%zu] must be a text", index);
		ask->arguments[index] = json_string_value(text);
	}
	ask->request.arguments = ask->arguments;
	return 0;
}

int ask_environment(struct ask *ask, const json_t *object, struct error *err)
{
	const json_t *variables = json_object_get(object, "env");
	const char *name;
	size_t count = 0;
	json_t *value;

	if (!variables)
		return 0;
	if (!json_is_object(variables) || json_object_size(variables) > ENVIRONMENT_COUNT_MAX)
		return refuse(err, EINVAL, "env must be an object of at most %d texts",
			      ENVIRONMENT_COUNT_MAX);
	ask->environment = calloc(json_object_size(variables) + 1, sizeof *ask->environment);
	if (!ask->environment)
		return fail(err, ENOMEM, "env");
	json_object_foreach((json_t *)variables, name, value)
	{
		if (!is_plain_text(value) || !name[0] || strchr(name, '='))
			return refuse(err, EINVAL,
				      "env.%.60s must be a text, and its name without \"=\"", name);
		if (asprintf(&ask->environment[count], "%s=%s", name, json_string_value(value)) <
		    0) {
			ask->environment[count] = NULL;
			return fail(err, ENOMEM, "env");
		}
		count++;
	}
	ask->request.environment = (const char *const *)ask->environment;
	return 0;
}
