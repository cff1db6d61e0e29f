/* SPDX-License-Identifier: Apache-2.0 */
/* protocol: JSON-RPC 2.0, and the revisions of MCP.
 *
 * Theory of operation. A message is checked in this order: that it is JSON, one object,
 * JSON-RPC 2.0 with an id that is a text or an integer; then its revision; then its
 * method; then its params. What is wrong is answered, and nothing else happens. Clients of
 * the stateless revision name it in each request's _meta; all others have to begin with
 * `initialize`, and their requests name none. Both may come from one client, unless its
 * transport knows better.
 *
 * A request becomes a call (calls.c), which ends with exactly one answer, or with none.
 * Answers come in the order in which things are done. */
#include "server/mcp/protocol.h"

#include "base/bounds.h"
#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>

/* Those that begin with `initialize`; the first is what an unknown one gets. */
static const char *const revisions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define FRESH_MS          3600000 /* what does not change while the server runs */

/* --- the methods of every server ----------------------------------------------------- */

static void write_offer(struct mcp_call *call, struct json *json)
{
	const struct mcp_offer *offer = call->server->offer;

	emit_key(json, "capabilities");
	emit_begin_object(json);
	offer->write_capabilities(json, call->modern);
	emit_end_object(json);
	emit_key(json, "instructions");
	emit_string(json, offer->instructions);
}

bool mcp_is_legacy_revision(const char *text)
{
	for (size_t i = 0; i < ARRAY_LENGTH(revisions); i++)
		if (strcmp(text, revisions[i]) == 0)
			return true;
	return false;
}

static void initialize(struct mcp_call *call)
{
	const char *asked = json_string_value(json_object_get(call->params, "protocolVersion"));
	struct bytes message;
	struct json json;

	if (!asked) {
		mcp_fail(call, MCP_INVALID_PARAMS, "initialize: protocolVersion must be a text");
		return;
	}
	call->client->initialized = true;
	mcp_begin_result(call, &message, &json);
	emit_key(&json, "protocolVersion");
	emit_string(&json, mcp_is_legacy_revision(asked) ? asked : revisions[0]);
	emit_key(&json, "serverInfo");
	mcp_write_implementation(call->server->offer, &json);
	write_offer(call, &json);
	mcp_end_result(call, &message, &json);
}

static void discover(struct mcp_call *call)
{
	struct bytes message;
	struct json json;

	mcp_begin_cacheable(call, &message, &json, FRESH_MS, "public");
	emit_key(&json, "supportedVersions");
	emit_begin_array(&json);
	emit_string(&json, MCP_STATELESS_REVISION);
	emit_end_array(&json);
	write_offer(call, &json);
	mcp_end_result(call, &message, &json);
}

static void ping(struct mcp_call *call)
{
	struct bytes message;
	struct json json;

	mcp_begin_result(call, &message, &json);
	mcp_end_result(call, &message, &json);
}

static const struct mcp_method common_methods[] = {
	{"initialize", MCP_LEGACY_ONLY | MCP_HANDSHAKE, initialize},
	{"ping", MCP_LEGACY_ONLY | MCP_HANDSHAKE, ping},
	{"server/discover", MCP_STATELESS_ONLY, discover},
	{NULL, 0, NULL},
};

static const struct mcp_method *find_method(const struct mcp_method *methods, const char *name)
{
	for (; methods->name; methods++)
		if (strcmp(methods->name, name) == 0)
			return methods;
	return NULL;
}

void mcp_call_tool(struct mcp_call *call)
{
	const char *name = json_string_value(json_object_get(call->params, "name"));
	const json_t *arguments = json_object_get(call->params, "arguments");

	if (!name) {
		mcp_fail(call, MCP_INVALID_PARAMS, "tools/call: name must be a text");
		return;
	}
	if (arguments && !json_is_object(arguments)) {
		mcp_fail(call, MCP_INVALID_PARAMS, "tools/call: arguments must be an object");
		return;
	}
	for (const struct mcp_tool *tool = call->server->offer->tools; tool->name; tool++) {
		if (strcmp(tool->name, name) == 0) {
			tool->call(call, arguments);
			return;
		}
	}
	mcp_fail(call, MCP_INVALID_PARAMS, "Unknown tool: %.60s", name);
}

/* --- requests and notifications ------------------------------------------------------ */

static const json_t *named_revision(const json_t *params)
{
	return json_object_get(json_object_get(params, "_meta"), MCP_META_REVISION);
}

const char *mcp_revision(const struct mcp_message *message)
{
	return json_string_value(named_revision(message->params));
}

/* Of a request that names its revision. False when it was answered. */
static bool take_named_revision(struct mcp_call *call, const json_t *version)
{
	const char *wrong = NULL;

	call->modern = true;
	if (!json_is_string(version)) {
		wrong = MCP_META_REVISION " must be a text";
	} else if (strcmp(json_string_value(version), MCP_STATELESS_REVISION) != 0) {
		mcp_fail_with(call, MCP_REFUSAL, MCP_UNSUPPORTED_VERSION,
			      "Unsupported protocol version",
			      json_pack("{s[s]sO}", "supported", MCP_STATELESS_REVISION,
					"requested", version));
		return false;
	} else if (!json_is_object(json_object_get(json_object_get(call->params, "_meta"),
						   META_CAPABILITIES))) {
		wrong = "_meta lacks " META_CAPABILITIES;
	}
	if (wrong)
		mcp_fail_with(call, MCP_REFUSAL, MCP_INVALID_PARAMS, wrong, NULL);
	return !wrong;
}

/* Settles the revision. False when the call was answered. */
static bool take_revision(struct mcp_call *call, const struct mcp_method *method)
{
	const json_t *version = named_revision(call->params);

	if (version)
		return take_named_revision(call, version);
	if (call->client->era != MCP_STATELESS &&
	    (call->client->initialized || (method && method->flags & MCP_HANDSHAKE)))
		return true;
	mcp_fail_with(call, MCP_REFUSAL, MCP_INVALID_PARAMS,
		      "begin with initialize, or name the protocol version in "
		      "params._meta[\"" MCP_META_REVISION "\"]",
		      NULL);
	return false;
}

static void handle_request(struct mcp_call *call, const char *name)
{
	const struct mcp_method *method = find_method(common_methods, name);
	unsigned wrong;

	if (!method)
		method = find_method(call->server->offer->methods, name);
	if (!take_revision(call, method))
		return;
	wrong = call->modern ? MCP_LEGACY_ONLY : MCP_STATELESS_ONLY;
	if (!method || method->flags & wrong) {
		char text[100];

		snprintf(text, sizeof text, "Method not found: %.60s", name);
		mcp_fail_with(call, MCP_NO_SUCH_METHOD, MCP_UNKNOWN_METHOD, text, NULL);
		return;
	}
	if (method->flags & MCP_LISTS && json_object_get(call->params, "cursor")) {
		mcp_fail(call, MCP_INVALID_PARAMS, "%s: there is no such cursor", name);
		return;
	}
	method->handle(call);
}

void mcp_handle(struct mcp_client *client, struct mcp_message *message, void *carrier)
{
	struct mcp_call *call;

	if (message->form == MCP_REQUEST) {
		call = mcp_call_new(client, message, carrier);
		if (call)
			handle_request(call, message->method);
		return;
	}
	if (message->form == MCP_NOTIFICATION &&
	    strcmp(message->method, "notifications/cancelled") == 0) {
		const json_t *id = json_object_get(message->params, "requestId");

		if (id)
			mcp_cancel(client, id);
	}
	json_decref(message->object);
}

/* --- messages ---------------------------------------------------------------------- */

static const char *what_is_wrong(const json_t *message, const json_t *id)
{
	const json_t *version = json_object_get(message, "jsonrpc");

	if (json_is_array(message))
		return "batches are not taken: send one message at a time";
	if (!json_is_object(message))
		return "a message is one object";
	if (id && !json_is_string(id) && !json_is_integer(id))
		return "id must be a text or an integer";
	if (!json_is_string(version) || strcmp(json_string_value(version), "2.0") != 0)
		return "jsonrpc must be \"2.0\"";
	if (!json_is_string(json_object_get(message, "method")))
		return "method must be a text";
	return NULL;
}

/* Whoever answers us was not asked, but that is no reason to answer back. */
static bool is_answer(const json_t *message)
{
	return json_is_object(message) && !json_object_get(message, "method") &&
	       (json_object_get(message, "result") || json_object_get(message, "error"));
}

/* What is wrong with a message that is none of ours to handle; it is gone. */
static enum mcp_form refuse_message(struct mcp_client *client, void *carrier, json_t *object,
				    int code, const char *wrong)
{
	const json_t *id = json_object_get(object, "id");

	mcp_refuse(client, carrier, json_is_string(id) || json_is_integer(id) ? id : NULL, code,
		   "%s", wrong);
	json_decref(object);
	return MCP_WRONG;
}

enum mcp_form mcp_read(struct mcp_client *client, struct span text, void *carrier,
		       struct mcp_message *ret_message)
{
	json_error_t error;
	json_t *object =
		ask_is_modest(text)
			? json_loadb((const char *)text.data, text.length,
				     JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL,
				     &error)
			: NULL;
	const json_t *id = json_object_get(object, "id");
	const json_t *params = json_object_get(object, "params");
	const char *wrong;

	if (!object && !ask_is_modest(text)) {
		mcp_refuse(client, carrier, NULL, MCP_INVALID_REQUEST,
			   "a message has at most %d values", JSON_VALUES_MAX);
		return MCP_WRONG;
	}
	if (!object) {
		mcp_refuse(client, carrier, NULL, MCP_PARSE_ERROR, "not JSON: %s (column %d)",
			   error.text, error.column);
		return MCP_WRONG;
	}
	wrong = what_is_wrong(object, id);
	if (wrong && is_answer(object)) {
		json_decref(object);
		return MCP_ANSWER;
	}
	if (wrong)
		return refuse_message(client, carrier, object, MCP_INVALID_REQUEST, wrong);
	if (params && !json_is_object(params) && id)
		return refuse_message(client, carrier, object, MCP_INVALID_PARAMS,
				      "params must be an object");
	if (params && !json_is_object(params)) {
		json_decref(object); /* a notification is never answered */
		return MCP_WRONG;
	}
	*ret_message = (struct mcp_message){
		.form = id ? MCP_REQUEST : MCP_NOTIFICATION,
		.object = object,
		.id = id,
		.params = params,
		.method = json_string_value(json_object_get(object, "method")),
	};
	return ret_message->form;
}

void mcp_receive(struct mcp_client *client, struct span text, void *carrier)
{
	struct mcp_message message;

	if (mcp_read(client, text, carrier, &message) >= MCP_NOTIFICATION)
		mcp_handle(client, &message, carrier);
}

void mcp_refuse_length(struct mcp_client *client, void *carrier)
{
	mcp_refuse(client, carrier, NULL, MCP_INVALID_REQUEST, "a message has at most %llu bytes",
		   (unsigned long long)MCP_LINE_BYTES_MAX);
}

/* --- life -------------------------------------------------------------------------- */

void mcp_server_init(struct mcp_server *server, struct execpy_engine *engine,
		     const struct mcp_offer *offer, const struct mcp_options *options)
{
	*server = (struct mcp_server){.engine = engine, .offer = offer, .options = options};
	TAILQ_INIT(&server->over);
	TAILQ_INIT(&server->sessions);
}

void mcp_server_free(struct mcp_server *server)
{
	while (!TAILQ_EMPTY(&server->sessions))
		mcp_forget_session(server, TAILQ_FIRST(&server->sessions)->id);
	free(server->installed);
	json_decref(server->result_schema);
}

void mcp_client_init(struct mcp_client *client, struct mcp_server *server,
		     const struct mcp_transport *transport, void *user)
{
	*client = (struct mcp_client){.server = server, .transport = transport, .user = user};
	TAILQ_INIT(&client->calls);
}

void mcp_client_free(struct mcp_client *client)
{
	while (!TAILQ_EMPTY(&client->calls))
		mcp_call_free(TAILQ_FIRST(&client->calls));
}
