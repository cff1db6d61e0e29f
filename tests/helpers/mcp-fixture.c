/* SPDX-License-Identifier: Apache-2.0 */
/* mcp-fixture: a server of MCP over HTTP with the tools, resources and prompts that the
 * conformance suite asks for, on the product's own protocol and HTTP code. For tests only.
 *
 * usage: mcp-fixture FILE    (tests/mcp/fixture.json)
 *
 * Serves on a free port of 127.0.0.1, which it prints, until its stdin ends. */
#include "server/mcp/endpoint.h"

#include "base/cleanup.h"

#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define STEP_MS 20

static json_t *file;

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static void emit_value(struct json *json, const char *key, const json_t *value)
{
	autofree char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

	if (!text)
		errx(1, "%s: %s", key, "no such value");
	emit_key(json, key);
	emit_raw(json, (struct span){(const uint8_t *)text, strlen(text)});
}

static const char *version(void)
{
	return "1";
}

/* --- lists ------------------------------------------------------------------------- */

static void list(struct mcp_call *call)
{
	static const struct {
		const char *method, *key;
	} keys[] = {{"tools/list", "tools"},
		    {"resources/list", "resources"},
		    {"resources/templates/list", "resourceTemplates"},
		    {"prompts/list", "prompts"}};
	struct bytes message;
	struct json json;

	mcp_begin_cacheable(call, &message, &json, 60000, "public");
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++)
		if (strcmp(text_of(call->message, "method"), keys[i].method) == 0)
			emit_value(&json, keys[i].key, json_object_get(file, keys[i].key));
	mcp_end_result(call, &message, &json);
}

/* --- tools ------------------------------------------------------------------------- */

static void finish_tool(struct mcp_call *call, bool is_error)
{
	const char *name = text_of(call->params, "name");
	struct bytes message;
	struct json json;

	mcp_begin_result(call, &message, &json);
	emit_value(&json, "content", json_object_get(json_object_get(file, "results"), name));
	emit_key(&json, "isError");
	emit_bool(&json, is_error);
	mcp_end_result(call, &message, &json);
}

static void tool_plain(struct mcp_call *call, const json_t *arguments)
{
	finish_tool(call, false);
}

static void tool_error(struct mcp_call *call, const json_t *arguments)
{
	finish_tool(call, true);
}

static void say_progress(struct mcp_call *call, unsigned percent)
{
	struct bytes message;
	struct json json;

	if (!call->progress_token)
		return;
	mcp_begin_progress(call, &message, &json);
	emit_number(&json, percent);
	emit_count(&json, "total", 100);
	mcp_end_notice(call, &message, &json);
}

static void say_log(struct mcp_call *call, const char *text)
{
	struct bytes message;
	struct json json;

	mcp_begin_notice(&message, &json, "notifications/message");
	emit_key(&json, "level");
	emit_string(&json, "info");
	emit_key(&json, "data");
	emit_string(&json, text);
	mcp_end_notice(call, &message, &json);
}

/* Three words, a while between them, then the answer. */
static void on_step(evutil_socket_t fd, short what, void *argument)
{
	const struct timeval pause = {0, STEP_MS * 1000};
	struct mcp_call *call = argument;
	bool logs = strcmp(text_of(call->params, "name"), "test_tool_with_logging") == 0;

	if (call->step == 3) {
		finish_tool(call, false);
		return;
	}
	if (logs)
		say_log(call, "a step is done");
	else
		say_progress(call, (unsigned)call->step * 50);
	call->step++;
	evtimer_add(call->ticker, &pause);
}

static void tool_steps(struct mcp_call *call, const json_t *arguments)
{
	call->ticker = evtimer_new(async_base(call->server->engine), on_step, call);
	if (!call->ticker)
		errx(1, "no timer");
	on_step(-1, 0, call);
}

static void tool_logs_if_asked(struct mcp_call *call, const json_t *arguments)
{
	const json_t *meta = json_object_get(call->params, "_meta");

	if (json_object_get(meta, "io.modelcontextprotocol/logLevel"))
		say_log(call, "somebody asked");
	finish_tool(call, false);
}

static void tool_needs_sampling(struct mcp_call *call, const json_t *arguments)
{
	mcp_fail_with(call, MCP_REFUSAL, MCP_MISSING_CAPABILITY, "the client cannot sample",
		      json_pack("{s{s{}}}", "requiredCapabilities", "sampling"));
}

static const struct mcp_tool tools[] = {
	{"test_simple_text", tool_plain},
	{"test_image_content", tool_plain},
	{"test_audio_content", tool_plain},
	{"test_embedded_resource", tool_plain},
	{"test_multiple_content_types", tool_plain},
	{"test_error_handling", tool_error},
	{"json_schema_2020_12_tool", tool_plain},
	{"test_tool_with_logging", tool_steps},
	{"test_tool_with_progress", tool_steps},
	{"test_logging_tool", tool_logs_if_asked},
	{"test_streaming_elicitation", tool_steps},
	{"test_missing_capability", tool_needs_sampling},
	{NULL, NULL},
};

/* --- resources and prompts ------------------------------------------------------------ */

static void answer_contents(struct mcp_call *call, json_t *content)
{
	autofree char *text = json_dumps(content, JSON_COMPACT);
	struct bytes message;
	struct json json;

	mcp_begin_cacheable(call, &message, &json, 60000, "private");
	emit_key(&json, "contents");
	emit_begin_array(&json);
	emit_raw(&json, (struct span){(const uint8_t *)text, strlen(text)});
	emit_end_array(&json);
	mcp_end_result(call, &message, &json);
	json_decref(content);
}

static void read_resource(struct mcp_call *call)
{
	const char *uri = text_of(call->params, "uri");
	json_t *content = json_object_get(json_object_get(file, "contents"), uri ? uri : "");
	char id[32], text[100], tail[8] = "";

	if (content)
		answer_contents(call, json_incref(content));
	else if (uri && sscanf(uri, "test://template/%31[^/]/dat%7s", id, tail) == 2 &&
		 strcmp(tail, "a") == 0) {
		snprintf(text, sizeof text, "{\"id\":\"%s\",\"templateTest\":true}", id);
		answer_contents(call, json_pack("{ssssss}", "uri", uri, "mimeType",
						"application/json", "text", text));
	} else {
		mcp_resource_not_found(call, uri ? uri : "");
	}
}

static void answer_nothing(struct mcp_call *call)
{
	struct bytes message;
	struct json json;

	mcp_begin_result(call, &message, &json);
	mcp_end_result(call, &message, &json);
}

/* The text with the values of arguments in the place of their names behind a '$'. */
static json_t *fill_in(const json_t *value, const json_t *arguments)
{
	const char *key;
	json_t *member, *filled;
	size_t index;

	if (json_is_array(value)) {
		filled = json_array();
		json_array_foreach(value, index, member)
			json_array_append_new(filled, fill_in(member, arguments));
		return filled;
	}
	if (json_is_object(value)) {
		filled = json_object();
		json_object_foreach((json_t *)value, key, member)
			json_object_set_new(filled, key, fill_in(member, arguments));
		return filled;
	}
	if (json_is_string(value)) {
		autobytes text = {0};

		for (const char *at = json_string_value(value); *at; at++) {
			size_t length =
				*at == '$' ? strspn(at + 1, "abcdefghijklmnopqrstuvwxyzU0123456789")
					   : 0;
			char name[32];

			snprintf(name, sizeof name, "%.*s", (int)length, at + 1);
			if (length > 0 && text_of(arguments, name)) {
				bytes_append_text(&text, text_of(arguments, name));
				at += length;
			} else {
				bytes_append(&text, at, 1);
			}
		}
		return json_stringn((const char *)text.data, text.length);
	}
	return json_incref((json_t *)value);
}

static void get_prompt(struct mcp_call *call)
{
	const char *name = text_of(call->params, "name");
	const json_t *contents =
		json_object_get(json_object_get(file, "messages"), name ? name : "");
	json_t *messages, *content;
	struct bytes message;
	struct json json;
	size_t index;

	if (!contents) {
		mcp_fail(call, MCP_INVALID_PARAMS, "there is no such prompt");
		return;
	}
	messages = json_array();
	json_array_foreach(contents, index, content) json_array_append_new(
		messages, json_pack("{ssso}", "role", "user", "content",
				    fill_in(content, json_object_get(call->params, "arguments"))));
	mcp_begin_result(call, &message, &json);
	emit_value(&json, "messages", messages);
	mcp_end_result(call, &message, &json);
	json_decref(messages);
}

static void complete(struct mcp_call *call)
{
	struct bytes message;
	struct json json;

	mcp_begin_result(call, &message, &json);
	emit_key(&json, "completion");
	emit_begin_object(&json);
	emit_key(&json, "values");
	emit_begin_array(&json);
	emit_string(&json, "testing");
	emit_end_array(&json);
	emit_count(&json, "total", 1);
	emit_key(&json, "hasMore");
	emit_bool(&json, false);
	emit_end_object(&json);
	mcp_end_result(call, &message, &json);
}

static const struct mcp_method methods[] = {
	{"tools/list", MCP_LISTS, list},
	{"tools/call", 0, mcp_call_tool},
	{"resources/list", MCP_LISTS, list},
	{"resources/templates/list", MCP_LISTS, list},
	{"resources/read", 0, read_resource},
	{"resources/subscribe", MCP_LEGACY_ONLY, answer_nothing},
	{"resources/unsubscribe", MCP_LEGACY_ONLY, answer_nothing},
	{"prompts/list", MCP_LISTS, list},
	{"prompts/get", 0, get_prompt},
	{"completion/complete", 0, complete},
	{"logging/setLevel", MCP_LEGACY_ONLY, answer_nothing},
	{NULL, 0, NULL},
};

static void write_capabilities(struct json *json, bool stateless)
{
	static const char *const names[] = {"tools", "resources", "prompts", "completions",
					    "logging"};

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
		emit_key(json, names[i]);
		emit_begin_object(json);
		if (!stateless && strcmp(names[i], "resources") == 0) {
			emit_key(json, "subscribe");
			emit_bool(json, true);
		}
		emit_end_object(json);
	}
}

static const struct mcp_offer offer = {
	.name = "execpy-fixture",
	.version = version,
	.instructions = "For the conformance suite.",
	.methods = methods,
	.tools = tools,
	.write_capabilities = write_capabilities,
};

/* --- the server ------------------------------------------------------------------------ */

/* No code is ever run here: of an engine there is only the loop. */
static struct execpy_engine engine = {.socket = -1, .cancel_fd = -1, .dead = true};
static struct server server = {.engine = &engine, .logs = {.access = -1, .audit = -1}};
static bool ended;

static void on_stdin(evutil_socket_t fd, short what, void *argument)
{
	char ignored[64];

	ended = read(fd, ignored, sizeof ignored) <= 0;
}

static void listen_and_tell(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
	socklen_t length = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct error why = {0};

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) < 0)
		err(1, "listen");
	if (http_listen(&server.http, fd, &why) < 0)
		errx(1, "%s", why.text);
	printf("http://127.0.0.1:%u/mcp\n", ntohs(address.sin_port));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct http_config config;
	struct error why = {0};
	struct event *input;

	if (argc != 2)
		errx(2, "usage: mcp-fixture FILE");
	file = json_load_file(argv[1], 0, NULL);
	if (!file)
		errx(1, "%s: not JSON", argv[1]);
	TAILQ_INIT(&engine.runs);
	engine.base = server.base = event_base_new();
	http_config_default(&config);
	server.numbers = config.numbers;
	http_init(&server.http, &server, server.base);
	if (mcp_http_begin(&server, &offer, &why) < 0)
		errx(1, "%s", why.text);
	listen_and_tell();
	input = event_new(server.base, STDIN_FILENO, EV_READ | EV_PERSIST, on_stdin, NULL);
	if (!input || event_add(input, NULL) < 0)
		errx(1, "no event");
	while (!ended) {
		event_base_loop(server.base, EVLOOP_ONCE | (server.again ? EVLOOP_NONBLOCK : 0));
		server.again = http_turn(&server.http);
		mcp_http_turn(&server);
	}
	http_free(&server.http);
	mcp_http_end(&server);
	event_free(input);
	event_base_free(server.base);
	json_decref(file);
	return 0;
}
