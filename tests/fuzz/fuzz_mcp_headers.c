/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_mcp_headers: any fields with any body, as a POST to /mcp brings them: the first six
 * lines are the fields, an empty one is none, and the rest is the body. */
#include "server/mcp/headers.h"

#include "base/cleanup.h"
#include "fuzz.h"

#include <nettle/base64.h>
#include <string.h>

#define FIELDS 6

static void look_at(void *user, void *carrier, enum mcp_kind kind, struct bytes *message)
{
	MUST(kind == MCP_REFUSAL && !message->failed);
	bytes_free(message);
}

static const struct mcp_transport transport = {.send = look_at};

/* By the other way round: what is taken must decode to what the body says. */
static void check_name(const char *field, const json_t *value)
{
	size_t length = strlen(field), decoded_length = 0;
	autofree uint8_t *decoded = malloc(BASE64_DECODE_LENGTH(length) + 1);
	struct base64_decode_ctx context;

	MUST(decoded);
	if (strncmp(field, "=?base64?", 9) != 0 || length < 11 ||
	    strcmp(field + length - 2, "?=") != 0) {
		MUST(strcmp(field, json_string_value(value)) == 0);
		return;
	}
	base64_decode_init(&context);
	MUST(base64_decode_update(&context, &decoded_length, decoded, length - 11, field + 9));
	MUST(base64_decode_final(&context));
	MUST(decoded_length == json_string_length(value));
	MUST(memcmp(decoded, json_string_value(value), decoded_length) == 0);
}

static void check_taken(const struct mcp_headers *headers, const struct mcp_message *message)
{
	const json_t *name = json_object_get(message->params, "name");
	const char *revision = mcp_revision(message);

	MUST(headers->revision);
	if (!revision || strcmp(revision, MCP_STATELESS_REVISION) != 0)
		return;
	MUST(strcmp(headers->revision, revision) == 0);
	MUST(headers->method && strcmp(headers->method, message->method) == 0);
	if (strcmp(message->method, "tools/call") == 0 && json_is_string(name)) {
		MUST(headers->name);
		check_name(headers->name, name);
	}
}

static void judge(const struct mcp_headers *headers, struct span body)
{
	struct mcp_server server;
	struct mcp_client client;
	struct mcp_message message;
	struct error why = {0};
	enum mcp_era era;
	int code;

	mcp_server_init(&server, NULL, &mcp_python_offer, NULL);
	mcp_client_init(&client, &server, &transport, NULL);
	if (mcp_read(&client, body, NULL, &message) >= MCP_NOTIFICATION) {
		code = mcp_judge_headers(headers, &message, &era, &why);
		MUST(code <= 0 && (code == 0) == (why.text[0] == '\0'));
		MUST(era == MCP_STATELESS || era == MCP_LEGACY);
		if (code == 0 && era == MCP_STATELESS && message.form == MCP_REQUEST)
			check_taken(headers, &message);
		json_decref(message.object);
	}
	mcp_client_free(&client);
	mcp_server_free(&server);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span rest = {data, size};
	char *fields[FIELDS] = {NULL};
	struct mcp_headers headers;

	for (size_t i = 0; i < FIELDS; i++) {
		const uint8_t *newline = memchr(rest.data, '\n', rest.length);
		size_t length = newline ? (size_t)(newline - rest.data) : rest.length;

		/* No field of HTTP has a NUL in it: its text ends there. */
		if (length > 0)
			fields[i] = strndup((const char *)rest.data, length);
		length += newline != NULL;
		rest = (struct span){rest.data + length, rest.length - length};
	}
	headers = (struct mcp_headers){.revision = fields[0],
				       .method = fields[1],
				       .name = fields[2],
				       .session = fields[3]};
	judge(&headers, rest);
	mcp_accepts(fields[4], "text", "event-stream");
	MUST(fields[4] || mcp_accepts(fields[4], "application", "json"));
	MUST(fields[5] || !mcp_is_json(fields[5]));
	mcp_is_json(fields[5]);
	for (size_t i = 0; i < FIELDS; i++)
		free(fields[i]);
	return 0;
}
