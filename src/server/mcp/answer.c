/* SPDX-License-Identifier: Apache-2.0 */
/* answer: what is sent to a client, as JSON-RPC and the revisions have it. */
#include "server/mcp/protocol.h"

#include "base/cleanup.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define META_SERVER "io.modelcontextprotocol/serverInfo"

static void begin_message(struct bytes *message, struct json *json)
{
	*message = (struct bytes){.ceiling = SIZE_MAX / 4};
	*json = (struct json){.out = message};
	emit_begin_object(json);
	emit_key(json, "jsonrpc");
	emit_string(json, "2.0");
}

static void emit_json(struct json *json, const json_t *value)
{
	autofree char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

	if (!text) {
		emit_null(json);
		return;
	}
	emit_raw(json, (struct span){(const uint8_t *)text, strlen(text)});
}

static void send_message(struct mcp_client *client, void *carrier, enum mcp_kind kind,
			 struct bytes *message, struct json *json)
{
	emit_end_object(json);
	bytes_append_text(message, "\n");
	if (!message->failed) {
		client->transport->send(client->user, carrier, kind, message);
		return;
	}
	bytes_free(message);
	if (kind != MCP_NOTICE && client->transport->dropped)
		client->transport->dropped(client->user, carrier);
}

void mcp_write_implementation(const struct mcp_offer *offer, struct json *json)
{
	emit_begin_object(json);
	emit_key(json, "name");
	emit_string(json, offer->name);
	emit_key(json, "version");
	emit_string(json, offer->version());
	emit_end_object(json);
}

/* --- notifications ----------------------------------------------------------------- */

void mcp_begin_notice(struct bytes *message, struct json *json, const char *method)
{
	begin_message(message, json);
	emit_key(json, "method");
	emit_string(json, method);
	emit_key(json, "params");
	emit_begin_object(json);
}

void mcp_begin_progress(struct mcp_call *call, struct bytes *message, struct json *json)
{
	mcp_begin_notice(message, json, "notifications/progress");
	emit_key(json, "progressToken");
	emit_json(json, call->progress_token);
	emit_key(json, "progress");
}

void mcp_end_notice(struct mcp_call *call, struct bytes *message, struct json *json)
{
	emit_end_object(json);
	send_message(call->client, call->carrier, MCP_NOTICE, message, json);
}

/* --- results ----------------------------------------------------------------------- */

void mcp_begin_result(struct mcp_call *call, struct bytes *message, struct json *json)
{
	begin_message(message, json);
	emit_key(json, "id");
	emit_json(json, call->id);
	emit_key(json, "result");
	emit_begin_object(json);
	if (!call->modern)
		return;
	emit_key(json, "resultType");
	emit_string(json, "complete");
	emit_key(json, "_meta");
	emit_begin_object(json);
	emit_key(json, META_SERVER);
	mcp_write_implementation(call->server->offer, json);
	emit_end_object(json);
}

void mcp_begin_cacheable(struct mcp_call *call, struct bytes *message, struct json *json,
			 uint64_t fresh_ms, const char *scope)
{
	mcp_begin_result(call, message, json);
	if (!call->modern)
		return;
	emit_count(json, "ttlMs", fresh_ms);
	emit_key(json, "cacheScope");
	emit_string(json, scope);
}

void mcp_end_result(struct mcp_call *call, struct bytes *message, struct json *json)
{
	emit_end_object(json);
	send_message(call->client, call->carrier, MCP_RESULT, message, json);
	mcp_call_free(call);
}

void mcp_write_text_block(struct json *json, struct span text)
{
	emit_begin_object(json);
	emit_key(json, "type");
	emit_string(json, "text");
	emit_key(json, "text");
	emit_text(json, text);
	emit_end_object(json);
}

void mcp_begin_tool_result(struct mcp_call *call, struct bytes *message, struct json *json,
			   struct span text)
{
	mcp_begin_result(call, message, json);
	emit_key(json, "content");
	emit_begin_array(json);
	if (text.length > 0)
		mcp_write_text_block(json, text);
}

void mcp_end_tool_result(struct mcp_call *call, struct bytes *message, struct json *json,
			 struct span structured, bool is_error)
{
	emit_end_array(json);
	if (structured.length > 0) {
		emit_key(json, "structuredContent");
		emit_raw(json, structured);
	}
	emit_key(json, "isError");
	emit_bool(json, is_error);
	mcp_end_result(call, message, json);
}

void mcp_tool_error(struct mcp_call *call, const char *format, ...)
{
	struct bytes message;
	struct json json;
	char text[640];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	mcp_begin_tool_result(call, &message, &json,
			      (struct span){(const uint8_t *)text, strlen(text)});
	mcp_end_tool_result(call, &message, &json, (struct span){NULL, 0}, true);
}

/* --- errors ------------------------------------------------------------------------ */

void mcp_send_error(struct mcp_client *client, void *carrier, enum mcp_kind kind, const json_t *id,
		    int code, const char *text, const json_t *data)
{
	struct bytes message;
	struct json json;

	begin_message(&message, &json);
	emit_key(&json, "id");
	emit_json(&json, id);
	emit_key(&json, "error");
	emit_begin_object(&json);
	emit_key(&json, "code");
	emit_raw(&json, (struct span){(const uint8_t *)"-", 1});
	json.comma = false;
	emit_number(&json, (uint64_t)-code);
	emit_key(&json, "message");
	emit_string(&json, text);
	if (data) {
		emit_key(&json, "data");
		emit_json(&json, data);
	}
	emit_end_object(&json);
	send_message(client, carrier, kind, &message, &json);
}

void mcp_refuse(struct mcp_client *client, void *carrier, const json_t *id, int code,
		const char *format, ...)
{
	char text[640];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	mcp_send_error(client, carrier, MCP_REFUSAL, id, code, text, NULL);
}

void mcp_fail_with(struct mcp_call *call, enum mcp_kind kind, int code, const char *text,
		   json_t *data)
{
	mcp_send_error(call->client, call->carrier, kind, call->id, code, text, data);
	json_decref(data);
	mcp_call_free(call);
}

void mcp_fail(struct mcp_call *call, int code, const char *format, ...)
{
	char text[640];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	mcp_fail_with(call, MCP_FAILURE, code, text, NULL);
}

void mcp_resource_not_found(struct mcp_call *call, const char *uri)
{
	mcp_fail_with(call, MCP_FAILURE, call->modern ? MCP_INVALID_PARAMS : MCP_RESOURCE_NOT_FOUND,
		      "Resource not found", json_pack("{ss}", "uri", uri));
}
