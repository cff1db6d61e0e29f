/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_mcp: any lines as a client's messages. The engine's warden has ended, so that each
 * run ends at once with a failure of ours; all else is as it is. */
#include "server/mcp/protocol.h"

#include "base/cleanup.h"
#include "fuzz.h"

#include <string.h>

static struct execpy_engine engine = {.socket = -1, .cancel_fd = -1, .dead = true};
static const char initialize[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\","
				 "\"params\":{\"protocolVersion\":\"2025-11-25\"}}";

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	TAILQ_INIT(&engine.runs);
	TAILQ_INIT(&engine.queries);
	TAILQ_INIT(&engine.known);
	snprintf(engine.why, sizeof engine.why, "there is no warden");
	engine.base = event_base_new();
	MUST(engine.base);
	return 0;
}

/* One line, one object; an answer or a notification. */
static void look_at(void *user, void *carrier, enum mcp_kind kind, struct bytes *message)
{
	struct span line = bytes_span(message);
	size_t *answers = user;
	json_t *object;

	MUST(!message->failed && line.length > 1 && line.data[line.length - 1] == '\n');
	MUST(memchr(line.data, '\n', line.length) == line.data + line.length - 1);
	object = json_loadb((const char *)line.data, line.length,
			    JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	MUST(json_is_object(object) && json_object_get(object, "jsonrpc"));
	MUST(!json_object_get(object, "result") != !json_object_get(object, "error"));
	MUST((kind == MCP_RESULT) == (json_object_get(object, "result") != NULL));
	(*answers)++;
	json_decref(object);
	bytes_free(message);
}

static const struct mcp_transport transport = {.send = look_at};

static void receive(struct mcp_client *client, struct span line, size_t *answers)
{
	*answers = 0;
	mcp_receive(client, line, NULL);
	event_base_loop(engine.base, EVLOOP_NONBLOCK);
	mcp_proceed(client->server);
	MUST(client->call_count == 0 && *answers <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct mcp_options options = {
		.limits = limits_default(), .ceilings = limits_default(), .policy = "open"};
	struct span rest = {data, size};
	size_t answers;
	struct mcp_server server;
	struct mcp_client client;

	mcp_server_init(&server, &engine, &mcp_python_offer, &options);
	mcp_client_init(&client, &server, &transport, &answers);
	if (size > 0 && data[0] != ' ')
		receive(&client, (struct span){(const uint8_t *)initialize, sizeof initialize - 1},
			&answers);
	while (rest.length > 0) {
		const uint8_t *newline = memchr(rest.data, '\n', rest.length);
		size_t length = newline ? (size_t)(newline - rest.data) : rest.length;

		receive(&client, (struct span){rest.data, length}, &answers);
		length += newline != NULL;
		rest = (struct span){rest.data + length, rest.length - length};
	}
	mcp_client_free(&client);
	mcp_server_free(&server);
	MUST(TAILQ_EMPTY(&engine.runs));
	return 0;
}
