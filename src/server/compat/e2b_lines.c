/* SPDX-License-Identifier: Apache-2.0 */
/* e2b_lines: what an execution tells, a line of JSON each. */
#include "server/compat/e2b.h"

#include "server/ask.h"

#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

/* As this API names MIME types; what is not here keeps its name. */
static const struct {
	const char *mime, *key;
} formats[] = {
	{"text/plain", "text"},        {"text/html", "html"},
	{"text/markdown", "markdown"}, {"text/latex", "latex"},
	{"image/svg+xml", "svg"},      {"image/png", "png"},
	{"image/jpeg", "jpeg"},        {"application/pdf", "pdf"},
	{"application/json", "json"},  {"application/javascript", "javascript"},
	{CHART_MIME, "chart"},
};

static struct json begin_line(struct bytes *out, const char *type)
{
	struct json json = {.out = out};

	out->ceiling = SIZE_MAX / 4;
	emit_begin_object(&json);
	emit_key(&json, "type");
	emit_string(&json, type);
	return json;
}

static void end_line(struct json *json)
{
	emit_end_object(json);
	bytes_append_text(json->out, "\n");
}

void e2b_write_type(struct bytes *out, const char *type)
{
	struct json json = begin_line(out, type);

	end_line(&json);
}

void e2b_write_count(struct bytes *out, uint64_t count)
{
	struct json json = begin_line(out, "number_of_executions");

	emit_count(&json, "execution_count", count);
	end_line(&json);
}

static void write_error(struct bytes *out, struct span name, struct span value,
			struct span traceback)
{
	struct json json = begin_line(out, "error");

	emit_key(&json, "name");
	emit_text(&json, name);
	emit_key(&json, "value");
	emit_text(&json, value);
	emit_key(&json, "traceback");
	emit_text(&json, traceback);
	end_line(&json);
}

/* What a run that did not end by itself took with it. */
static void append_lost(struct execpy_result *result, struct bytes *text)
{
	const char *lost = NULL;
	bool restored = false;

	execpy_result_session_run(result, &restored, &lost);
	if (!restored)
		return;
	bytes_append_text(text, "The context goes on as it was before this execution.\n");
	if (lost && lost[0])
		bytes_append_format(text, "lost: %s\n", lost);
}

void e2b_write_error(struct bytes *out, struct execpy_result *result)
{
	struct result_error error;

	if (!result_error(result, &error))
		return;
	append_lost(result, &error.traceback);
	write_error(out, bytes_span(&error.type), bytes_span(&error.message),
		    bytes_span(&error.traceback));
	result_error_free(&error);
}

static struct span span_of(const char *text)
{
	return (struct span){(const uint8_t *)text, strlen(text)};
}

void e2b_write_failure(struct bytes *out, const struct error *why)
{
	write_error(out, span_of("InternalError"), span_of(why->text), span_of(why->text));
}

/* --- results -------------------------------------------------------------------------- */

/* A guest's JSON, on one line. What is none, or would take much memory, is not told. */
static void write_json(struct json *json, const char *key, struct span text)
{
	json_t *read = ask_is_modest(text) ? json_loadb((const char *)text.data, text.length,
							JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL)
					   : NULL;
	char *line = read ? json_dumps(read, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

	json_decref(read);
	if (!line)
		return;
	emit_key(json, key);
	emit_raw(json, span_of(line));
	free(line);
}

static const char *key_of(const char *mime)
{
	for (size_t i = 0; i < ARRAY_LENGTH(formats); i++)
		if (strcmp(formats[i].mime, mime) == 0)
			return formats[i].key;
	return mime;
}

/* A str is shown without the quotes of its repr(). */
static struct span without_quotes(struct span text)
{
	if (text.length < 2 || text.data[0] != '\'' || text.data[text.length - 1] != '\'')
		return text;
	return (struct span){text.data + 1, text.length - 2};
}

static void write_datum(void *user, const char *mime, struct span data)
{
	struct json *json = user;
	const char *key = key_of(mime);

	if (strstr(mime, "json")) {
		write_json(json, key, data);
		return;
	}
	emit_key(json, key);
	if (strcmp(key, "text") == 0)
		emit_text(json, without_quotes(data));
	else if (result_is_text(mime))
		emit_text(json, data);
	else
		emit_base64(json, data);
}

void e2b_write_result(struct bytes *out, struct span bundle, bool is_value)
{
	struct json json = begin_line(out, "result");

	emit_key(&json, "is_main_result");
	emit_bool(&json, is_value);
	result_each_datum(bundle, write_datum, &json);
	end_line(&json);
}
