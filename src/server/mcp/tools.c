/* SPDX-License-Identifier: Apache-2.0 */
/* tools: tools/list, execute_python and check_python.
 *
 * What is wrong with a call's arguments, like everything that becomes of the code, is
 * told as a result that is an error: a model can read it and do better. JSON-RPC errors
 * are for what only a client can mend. */
#include "server/mcp/protocol.h"

#include "base/cleanup.h"
#include "base/picture.h"

#include <nettle/base64.h>
#include <stdio.h>
#include <string.h>

#define FRESH_MS    3600000
#define LINKS_SHOWN 50

/* --- results ------------------------------------------------------------------------ */

struct pictures {
	struct json *json;
	size_t shown, left_out;
	struct bytes notes;
};

/* Those that could be made smaller where they were made are. */
static const char *why_not_sent(const struct pictures *pictures, struct span data)
{
	uint32_t width = 0, height = 0;

	if (pictures->shown == MCP_PICTURES_MAX)
		return "there are too many";
	picture_size(data, &width, &height);
	if (width > MCP_PICTURE_PIXELS_MAX || height > MCP_PICTURE_PIXELS_MAX)
		return "it has more than 2000 pixels a side; make it smaller";
	if (BASE64_ENCODE_RAW_LENGTH(data.length) > MCP_PICTURE_BYTES_MAX)
		return "it is larger than 5 MiB; draw it smaller (dpi, figsize)";
	return NULL;
}

static void add_picture(void *user, const char *mime, struct span data)
{
	struct pictures *pictures = user;
	const char *wrong = why_not_sent(pictures, data);

	if (wrong) {
		pictures->left_out++;
		bytes_append_format(&pictures->notes, "[picture] one was not sent: %s\n", wrong);
		return;
	}
	pictures->shown++;
	emit_begin_object(pictures->json);
	emit_key(pictures->json, "type");
	emit_string(pictures->json, "image");
	emit_key(pictures->json, "data");
	emit_base64(pictures->json, data);
	emit_key(pictures->json, "mimeType");
	emit_string(pictures->json, mime);
	emit_end_object(pictures->json);
}

static void write_links(const struct execpy_result *result, struct json *json)
{
	size_t shown = 0;

	for (size_t i = 0; i < result->file_count && shown < LINKS_SHOWN; i++) {
		const struct collected_file *file = &result->files[i];

		if (file->refused)
			continue;
		shown++;
		emit_begin_object(json);
		emit_key(json, "type");
		emit_string(json, "resource_link");
		emit_key(json, "uri");
		mcp_write_uri(json, result->session, file->path);
		emit_key(json, "name");
		emit_string(json, file->path);
		emit_key(json, "mimeType");
		emit_string(json, file->media_type);
		emit_count(json, "size", file->size);
		emit_end_object(json);
	}
}

static void finish_execute(struct mcp_call *call, struct execpy_result *result,
			   const struct error *why)
{
	struct pictures pictures = {0};
	autobytes text = {0};
	struct bytes message;
	struct json json;
	const char *object;
	size_t length;

	if (!result) {
		mcp_tool_error(call, "%s", why->text);
		return;
	}
	object = execpy_result_json(result, &length);
	if (!object) {
		mcp_fail(call, MCP_INTERNAL_ERROR, "out of memory");
		return;
	}
	result_model_text(result, MCP_TEXT_BYTES, &text);
	mcp_begin_tool_result(call, &message, &json, bytes_span(&text));
	pictures.json = &json;
	result_pictures(result, add_picture, &pictures);
	if (pictures.notes.length > 0)
		mcp_write_text_block(&json, bytes_span(&pictures.notes));
	bytes_free(&pictures.notes);
	if (result->session[0])
		write_links(result, &json);
	mcp_end_tool_result(call, &message, &json, (struct span){(const uint8_t *)object, length},
			    result->status != EXECPY_OK);
}

static void finish_check(struct mcp_call *call, struct execpy_result *result,
			 const struct error *why)
{
	autobytes text = {0};
	struct bytes message;
	struct json json;
	const char *object;
	size_t length;

	if (!result) {
		mcp_tool_error(call, "%s", why->text);
		return;
	}
	if (result->status != EXECPY_OK && result->status != EXECPY_BLOCKED) {
		mcp_tool_error(call, "the code was not checked: %s", execpy_result_reason(result));
		return;
	}
	object = execpy_result_check_json(result, &length);
	if (!object) {
		mcp_fail(call, MCP_INTERNAL_ERROR, "out of memory");
		return;
	}
	result_model_verdict(result, MCP_TEXT_BYTES, &text);
	mcp_begin_tool_result(call, &message, &json, bytes_span(&text));
	mcp_end_tool_result(call, &message, &json, (struct span){(const uint8_t *)object, length},
			    false);
}

/* --- arguments ----------------------------------------------------------------------- */

bool mcp_known_arguments(struct mcp_call *call, const json_t *arguments, const char *const *names)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)arguments, key, value)
	{
		size_t at = 0;

		while (names[at] && strcmp(names[at], key) != 0)
			at++;
		if (!names[at] && !limit_find(key)) {
			mcp_tool_error(call, "\"%.60s\" is no argument of this tool", key);
			return false;
		}
	}
	return true;
}

bool mcp_text_argument(struct mcp_call *call, const json_t *arguments, const char *name,
		       const char **ret_text)
{
	struct error err = {0};

	*ret_text = NULL;
	if (ask_text(arguments, "", name, ret_text, &err) == 0)
		return true;
	mcp_tool_error(call, "%s", err.text);
	return false;
}

bool mcp_limit_arguments(struct mcp_call *call, const json_t *arguments, bool in_session,
			 struct execpy_limits *ret_limits)
{
	const struct ask_rules rules = {.initial = call->server->options->limits,
					.ceilings = call->server->options->ceilings,
					.in_session = in_session};
	struct error err = {0};

	if (ask_limits(arguments, "", &rules, ret_limits, &err) == 0)
		return true;
	mcp_tool_error(call, "%s", err.text);
	return false;
}

static bool take_code(struct mcp_call *call, const json_t *arguments)
{
	const json_t *code = json_object_get(arguments, "code");

	if (!json_is_string(code)) {
		mcp_tool_error(call, "code is missing: the Python code, a text");
		return false;
	}
	call->ask.request.code = json_string_value(code);
	call->ask.request.code_length = json_string_length(code);
	return true;
}

static bool take_inputs(struct mcp_call *call, const json_t *arguments)
{
	struct error err = {0};

	if (ask_files(&call->ask, arguments, MCP_FILES_MAX, &err) == 0 &&
	    ask_stdin(&call->ask, arguments, &err) == 0)
		return true;
	mcp_tool_error(call, "%s", err.text);
	return false;
}

/* --- the tools -------------------------------------------------------------------------- */

void mcp_execute(struct mcp_call *call, const json_t *arguments)
{
	static const char *const names[] = {"code", "session", "files", "stdin", "template", NULL};
	const struct mcp_options *options = call->server->options;
	struct execpy_request *request = &call->ask.request;
	const struct async what = {0};
	const char *session, *template;
	struct error err = {0};

	if (!mcp_known_arguments(call, arguments, names) || !take_code(call, arguments) ||
	    !mcp_text_argument(call, arguments, "session", &session) ||
	    !mcp_text_argument(call, arguments, "template", &template))
		return;
	if (session && (strlen(session) >= sizeof call->session ||
			!mcp_may_use_session(call->server, session))) {
		mcp_tool_error(call, "there is no session %.60s", session);
		return;
	}
	if (!mcp_limit_arguments(call, arguments, session != NULL, &request->limits) ||
	    !take_inputs(call, arguments))
		return;
	snprintf(call->session, sizeof call->session, "%s", session ? session : "");
	request->policy = session ? NULL : options->policy;
	request->template = template ? template : options->template;
	request->truncate_output = options->truncate_output;
	request->picture_pixels = MCP_PICTURE_PIXELS_MAX;
	call->ran_as = "mcp execute_python";
	call->finish = finish_execute;
	if (mcp_begin(call, &what, &err) < 0)
		mcp_tool_error(call, "%s", err.text);
}

void mcp_check(struct mcp_call *call, const json_t *arguments)
{
	static const char *const names[] = {"code", NULL};
	const struct async what = {.check_only = true};
	struct error err = {0};

	if (!mcp_known_arguments(call, arguments, names) || !take_code(call, arguments))
		return;
	call->ask.request.policy = call->server->options->policy;
	call->ran_as = "mcp check_python";
	call->finish = finish_check;
	if (mcp_begin(call, &what, &err) < 0)
		mcp_tool_error(call, "%s", err.text);
}

/* --- the list --------------------------------------------------------------------------- */

static void answer_list(struct mcp_call *call)
{
	struct bytes message;
	struct json json;

	mcp_begin_cacheable(call, &message, &json, FRESH_MS, "public");
	mcp_write_tools(call->server, &json);
	mcp_end_result(call, &message, &json);
}

/* One line, of a run of ours; without it the descriptions do not say. */
static void finish_survey(struct mcp_call *call, struct execpy_result *result,
			  const struct error *why)
{
	autobytes line = {0};

	if (result && result->status == EXECPY_OK && !call->server->installed) {
		capture_text(&result->output[0], &line);
		while (line.length > 0 && line.data[line.length - 1] == '\n')
			line.length--;
		call->server->installed = span_to_string(bytes_span(&line));
	}
	answer_list(call);
}

void mcp_list_tools(struct mcp_call *call)
{
	const struct async what = {0};
	struct error err = {0};

	if (call->server->installed) {
		answer_list(call);
		return;
	}
	call->ask.request.code = mcp_survey;
	call->ask.request.code_length = mcp_survey_length;
	call->ask.request.policy = "open";
	call->ask.request.template = "bare";
	call->ask.request.limits.time_ms = call->ask.request.limits.cpu_ms = MCP_PROBE_MS;
	call->finish = finish_survey;
	if (mcp_begin(call, &what, &err) < 0)
		answer_list(call);
}
