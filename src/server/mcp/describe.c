/* SPDX-License-Identifier: Apache-2.0 */
/* describe: what the tools are, in words and schemas, for models and clients. */
#include "server/mcp/protocol.h"

#include "base/cleanup.h"
#include "policy/policy.h"
#include "policy/templates.h"

#include <stdio.h>
#include <string.h>

extern const char result_schema[]; /* docs/result.schema.json, by tools/embed.py */

static const char *policy_words(enum profile profile)
{
	switch (profile) {
	case PROFILE_STRICT:
		return "Refused before it runs: modules that reach the system (os, sys, "
		       "subprocess, "
		       "socket, ...) unless each use is harmless, eval/exec/compile, writing "
		       "outside "
		       "of the working directory.";
	case PROFILE_STANDARD:
		return "Refused before it runs: the interpreter's internals, code objects, writing "
		       "to "
		       "system directories.";
	default:
		return "Nothing is refused before it runs; the sandbox holds all the same.";
	}
}

static void describe_policy(const struct mcp_options *options, struct bytes *out)
{
	autopolicy policy = {0};
	const char *name = options->policy ? options->policy : "strict";
	struct policy built_in;

	if (policy_load(name, &policy, NULL) < 0)
		return; /* each call will say so */
	bytes_append_text(out, policy_words(policy.profile));
	if (policy_find_profile(name, &built_in) < 0)
		bytes_append_format(out, " The policy %s changes some of that.", policy.name);
}

static void describe_limits(const struct mcp_options *options, struct bytes *out)
{
	for (size_t i = 0; i < limit_count; i++) {
		char value[40];

		limit_describe(&limit_infos[i], limit_get(&options->limits, &limit_infos[i]), value,
			       sizeof value);
		bytes_append_format(out, "%s%s %s", i ? ", " : "", limit_infos[i].name, value);
	}
}

static void describe_execute(struct mcp_server *server, struct bytes *out)
{
	bytes_append_text(out,
			  "Runs Python code in a sandbox and returns what it printed, the value of "
			  "its last expression, pictures (open matplotlib figures, display()), the "
			  "files it created, and for an error the traceback with a hint. ");
	if (server->installed && server->installed[0])
		bytes_append_format(out, "There is %s, and nothing else can be installed. ",
				    server->installed);
	bytes_append_text(out, "There is no network. ");
	describe_policy(server->options, out);
	bytes_append_text(out, " Limits: ");
	describe_limits(server->options, out);
	bytes_append_text(out,
			  "; a call may ask for more. Every call starts afresh; with `session` "
			  "(made by python_session) variables, imports and files stay. The working "
			  "directory, /workspace, is where files are read and written.");
}

/* --- schemas --------------------------------------------------------------------- */

static void begin_property(struct json *json, const char *name, const char *type,
			   const char *description)
{
	emit_key(json, name);
	emit_begin_object(json);
	emit_key(json, "type");
	emit_string(json, type);
	emit_key(json, "description");
	emit_string(json, description);
}

static void property(struct json *json, const char *name, const char *type, const char *description)
{
	begin_property(json, name, type, description);
	emit_end_object(json);
}

static void begin_schema(struct json *json, const char *key)
{
	emit_key(json, key);
	emit_begin_object(json);
	emit_key(json, "type");
	emit_string(json, "object");
}

static void close_to_others(struct json *json)
{
	emit_key(json, "additionalProperties");
	emit_bool(json, false);
}

static void require(struct json *json, const char *name)
{
	emit_key(json, "required");
	emit_begin_array(json);
	emit_string(json, name);
	emit_end_array(json);
}

static void limit_properties(const struct mcp_options *options, struct json *json)
{
	for (size_t i = 0; i < limit_count; i++) {
		const struct limit_info *info = &limit_infos[i];

		emit_key(json, info->name);
		emit_begin_object(json);
		emit_key(json, "type");
		emit_string(json, "integer");
		emit_count(json, "minimum", info->least);
		emit_count(json, "maximum", limit_get(&options->ceilings, info));
		emit_count(json, "default", limit_get(&options->limits, info));
		emit_end_object(json);
	}
}

static void template_property(struct json *json)
{
	autobytes text = {0};

	bytes_append_text(&text,
			  "What is imported already when the code starts: auto (by the code's "
			  "own imports, the default), bare");
	for (size_t i = 0; i < TEMPLATE_COUNT; i++)
		if (strcmp(template_infos[i].name, "bare") != 0)
			bytes_append_format(&text, ", %s", template_infos[i].name);
	bytes_append(&text, "", 1);
	property(json, "template", "string", text.failed ? "" : (const char *)text.data);
}

static void files_property(struct json *json)
{
	begin_property(json, "files", "array", "Files to put into the working directory first");
	emit_count(json, "maxItems", MCP_FILES_MAX);
	emit_key(json, "items");
	emit_begin_object(json);
	emit_key(json, "type");
	emit_string(json, "object");
	emit_key(json, "properties");
	emit_begin_object(json);
	property(json, "path", "string", "Relative to the working directory");
	property(json, "content", "string", "The content as text");
	property(json, "content_base64", "string", "The content in base64, instead");
	emit_end_object(json);
	require(json, "path");
	close_to_others(json);
	emit_end_object(json);
	emit_end_object(json);
}

static void execute_schemas(struct mcp_server *server, struct json *json)
{
	begin_schema(json, "inputSchema");
	emit_key(json, "properties");
	emit_begin_object(json);
	property(json, "code", "string", "The Python code");
	property(json, "session", "string", "Id of a session to run in; default: none");
	files_property(json);
	property(json, "stdin", "string", "What input() and sys.stdin read");
	template_property(json);
	limit_properties(server->options, json);
	emit_end_object(json);
	require(json, "code");
	close_to_others(json);
	emit_end_object(json);
	if (!server->result_schema) {
		server->result_schema = json_loads(result_schema, 0, NULL);
		/* The dialect is the protocol's own; an id would be fetched by some. */
		json_object_del(server->result_schema, "$schema");
		json_object_del(server->result_schema, "$id");
	}
	if (server->result_schema) {
		autofree char *text = json_dumps(server->result_schema, JSON_COMPACT);

		if (!text)
			return;
		emit_key(json, "outputSchema");
		emit_raw(json, (struct span){(const uint8_t *)text, strlen(text)});
	}
}

static void check_schemas(struct mcp_server *server, struct json *json)
{
	begin_schema(json, "inputSchema");
	emit_key(json, "properties");
	emit_begin_object(json);
	property(json, "code", "string", "The Python code");
	emit_end_object(json);
	require(json, "code");
	close_to_others(json);
	emit_end_object(json);
	begin_schema(json, "outputSchema");
	emit_key(json, "properties");
	emit_begin_object(json);
	property(json, "decision", "string", "allow or block");
	property(json, "findings", "array",
		 "rule, severity (block, warn, note), message, place and hint of each finding");
	emit_end_object(json);
	require(json, "decision");
	emit_end_object(json);
}

static void session_schemas(struct mcp_server *server, struct json *json)
{
	static const char *const actions[] = {"create",   "list", "info", "checkpoint",
					      "rollback", "undo", "fork", "end"};

	begin_schema(json, "inputSchema");
	emit_key(json, "properties");
	emit_begin_object(json);
	begin_property(json, "action", "string", "What to do");
	emit_key(json, "enum");
	emit_begin_array(json);
	for (size_t i = 0; i < ARRAY_LENGTH(actions); i++)
		emit_string(json, actions[i]);
	emit_end_array(json);
	emit_end_object(json);
	property(json, "session", "string", "Id of the session; for all but create and list");
	property(json, "name", "string", "Of the checkpoint; for checkpoint and rollback");
	property(json, "count", "integer", "How many branches fork makes; 1 unless given");
	template_property(json);
	limit_properties(server->options, json);
	emit_end_object(json);
	require(json, "action");
	close_to_others(json);
	emit_end_object(json);
	begin_schema(json, "outputSchema");
	emit_key(json, "properties");
	emit_begin_object(json);
	property(json, "sessions", "array", "The session that this was about, or each");
	emit_end_object(json);
	require(json, "sessions");
	emit_end_object(json);
}

static void describe_check(struct mcp_server *server, struct bytes *out)
{
	bytes_append_text(out,
			  "Says whether execute_python would refuse this code, why, and what to "
			  "write instead, without running it. ");
	describe_policy(server->options, out);
}

static void describe_session(struct mcp_server *server, struct bytes *out)
{
	bytes_append_text(
		out,
		"Sessions keep variables, imports and files from one execute_python to the next, "
		"and "
		"survive runs that crash or reach a limit. create makes one and returns its id "
		"(limits "
		"and template are optional); list and info say what there is; checkpoint keeps the "
		"present state under a name, rollback returns to it, undo returns to before the "
		"last "
		"run; fork makes sessions that go on from the present state, each by itself, to "
		"try several ways; end ends it. A session that is not used ends by itself, as info "
		"says, and "
		"with "
		"this server unless it uses a daemon.");
}

static const struct {
	const char *name, *title;
	bool read_only, destructive, idempotent;
	void (*describe)(struct mcp_server *server, struct bytes *out);
	void (*schemas)(struct mcp_server *server, struct json *json);
} tools[] = {
	/* What the code does stays in the sandbox, but there it may do anything. */
	{"execute_python", "Run Python", false, false, false, describe_execute, execute_schemas},
	{"check_python", "Check Python", true, false, true, describe_check, check_schemas},
	{"python_session", "Python sessions", false, true, false, describe_session,
	 session_schemas},
};

void mcp_write_tools(struct mcp_server *server, struct json *json)
{
	emit_key(json, "tools");
	emit_begin_array(json);
	for (size_t i = 0; i < ARRAY_LENGTH(tools); i++) {
		autobytes description = {0};

		tools[i].describe(server, &description);
		emit_begin_object(json);
		emit_key(json, "name");
		emit_string(json, tools[i].name);
		emit_key(json, "title");
		emit_string(json, tools[i].title);
		emit_key(json, "description");
		emit_text(json, bytes_span(&description));
		tools[i].schemas(server, json);
		emit_key(json, "annotations");
		emit_begin_object(json);
		emit_key(json, "title");
		emit_string(json, tools[i].title);
		emit_key(json, "readOnlyHint");
		emit_bool(json, tools[i].read_only);
		emit_key(json, "destructiveHint");
		emit_bool(json, tools[i].destructive);
		emit_key(json, "idempotentHint");
		emit_bool(json, tools[i].idempotent);
		emit_key(json, "openWorldHint");
		emit_bool(json, false);
		emit_end_object(json);
		emit_end_object(json);
	}
	emit_end_array(json);
}
