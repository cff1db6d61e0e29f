/* SPDX-License-Identifier: Apache-2.0 */
/* protocol: JSON-RPC 2.0, and the revisions of MCP.
 *
 * Theory of operation. A message is checked in this order: that it is JSON, one object,
 * JSON-RPC 2.0 with an id that is a text or an integer; then its revision; then its
 * method; then its params. What is wrong is answered, and nothing else happens. Clients of
 * the stateless revision name it in each request's _meta; all others have to begin with
 * `initialize`, and their requests name none. Both may come over one connection.
 *
 * A request becomes a call, which ends with exactly one answer, or with none when the
 * client cancelled it. Answers come in the order in which things are done. */
#include "server/mcp/protocol.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define STATELESS "2026-07-28"

/* Those that begin with `initialize`; the first is what an unknown one gets. */
static const char *const revisions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

#define META_VERSION      "io.modelcontextprotocol/protocolVersion"
#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META_SERVER       "io.modelcontextprotocol/serverInfo"
#define FRESH_MS          3600000 /* what does not change while the server runs */

/* --- answers ------------------------------------------------------------------- */

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

static void send_message(struct mcp *mcp, struct bytes *message, struct json *json)
{
	emit_end_object(json);
	bytes_append_text(message, "\n");
	if (message->failed)
		bytes_free(message);
	else
		mcp->send(mcp->user, message);
}

static void write_server(struct json *json)
{
	emit_begin_object(json);
	emit_key(json, "name");
	emit_string(json, "execpy");
	emit_key(json, "version");
	emit_string(json, execpy_version());
	emit_end_object(json);
}

static void end_call(struct mcp_call *call)
{
	TAILQ_REMOVE(&call->mcp->calls, call, entry);
	call->mcp->call_count--;
	if (call->ticker)
		event_free(call->ticker);
	async_abandon(call->run);
	async_abandon_opening(call->opening);
	execpy_result_free(call->result);
	for (size_t i = 0; i < call->request.file_count; i++)
		close(call->files[i].fd);
	if (call->request.stdin_fd >= 0)
		close(call->request.stdin_fd);
	if (call->get.fd >= 0)
		close(call->get.fd);
	bytes_free(&call->part);
	free(call->name);
	json_decref(call->message);
	free(call);
}

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
	write_server(json);
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
	send_message(call->mcp, message, json);
	end_call(call);
}

/* id and data may be NULL. */
static void send_error(struct mcp *mcp, const json_t *id, int code, const char *text,
		       const json_t *data)
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
	send_message(mcp, &message, &json);
}

void mcp_fail(struct mcp_call *call, int code, const char *format, ...)
{
	char text[640];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	send_error(call->mcp, call->id, code, text, NULL);
	end_call(call);
}

void mcp_resource_not_found(struct mcp_call *call, const char *uri)
{
	json_t *data = json_pack("{ss}", "uri", uri);

	send_error(call->mcp, call->id, call->modern ? MCP_INVALID_PARAMS : MCP_RESOURCE_NOT_FOUND,
		   "Resource not found", data);
	json_decref(data);
	end_call(call);
}

/* --- what goes on ---------------------------------------------------------------- */

static void on_tick(evutil_socket_t fd, short what, void *argument)
{
	struct mcp_call *call = argument;
	uint64_t us = (uint64_t)now_us() - call->began_us;
	char text[120];
	struct bytes message;
	struct json json;

	snprintf(text, sizeof text, "running for %llu s, %llu bytes of output so far",
		 (unsigned long long)(us / 1000000), (unsigned long long)call->output_bytes);
	begin_message(&message, &json);
	emit_key(&json, "method");
	emit_string(&json, "notifications/progress");
	emit_key(&json, "params");
	emit_begin_object(&json);
	emit_key(&json, "progressToken");
	emit_json(&json, call->progress_token);
	emit_key(&json, "progress");
	emit_milliseconds(&json, us / 1000); /* so that it is seconds */
	emit_key(&json, "message");
	emit_string(&json, text);
	emit_end_object(&json);
	send_message(call->mcp, &message, &json);
}

static void start_ticker(struct mcp_call *call)
{
	const struct timeval second = {MCP_PROGRESS_MS / 1000, MCP_PROGRESS_MS % 1000 * 1000};

	if (!call->progress_token || call->ticker)
		return;
	/* Without it there is no progress to be seen, and all else goes on. */
	call->ticker = event_new(async_base(call->mcp->engine), -1, EV_PERSIST, on_tick, call);
	if (call->ticker)
		event_add(call->ticker, &second);
}

static void count_output(void *user, enum execpy_stream stream, const void *data, size_t length)
{
	struct mcp_call *call = user;

	call->output_bytes += length;
}

/* Called from the loop, where nothing may be begun: mcp_proceed() does it. */
static void on_done(void *user, struct execpy_result *result, const struct error *why)
{
	struct mcp_call *call = user;

	call->run = NULL;
	call->over = true;
	call->result = result;
	call->why = *why;
}

void mcp_proceed(struct mcp *mcp)
{
	struct mcp_call *call;

	for (;;) {
		struct execpy_result *result;

		TAILQ_FOREACH(call, &mcp->calls, entry)
		if (call->over)
			break;
		if (!call)
			return;
		call->over = false;
		result = take_ptr(call->result);
		if (call->cancelled && call->opened.id[0])
			execpy_session_end(mcp->engine, call->opened.id, &(struct execpy_error){0});
		if (call->cancelled)
			end_call(call);
		else
			call->finish(call, result, &call->why);
		execpy_result_free(result);
	}
}

int mcp_begin(struct mcp_call *call, const struct async *what, struct error *err)
{
	struct async async = *what;

	async.session = call->session[0] ? call->session : NULL;
	async.callbacks = (struct execpy_callbacks){.output = count_output, .user = call};
	async.done = on_done;
	async.user = call;
	call->run = async_begin(call->mcp->engine, &call->request, &async, err);
	if (!call->run)
		return -err->number;
	start_ticker(call);
	return 0;
}

static void on_opened(void *user, const struct execpy_session_info *info, const struct error *why)
{
	struct mcp_call *call = user;

	call->opening = NULL;
	call->over = true;
	call->why = *why;
	if (info)
		call->opened = *info;
}

int mcp_begin_session(struct mcp_call *call, const struct execpy_session_options *options,
		      struct error *err)
{
	call->opening = async_open_session(call->mcp->engine, options, on_opened, call, err);
	if (!call->opening)
		return -err->number;
	start_ticker(call);
	return 0;
}

/* --- methods --------------------------------------------------------------------- */

static void write_capabilities(struct json *json)
{
	emit_key(json, "capabilities");
	emit_begin_object(json);
	emit_key(json, "tools");
	emit_begin_object(json);
	emit_end_object(json);
	emit_key(json, "resources");
	emit_begin_object(json);
	emit_end_object(json);
	emit_end_object(json);
	emit_key(json, "instructions");
	emit_string(json, mcp_instructions());
}

static void initialize(struct mcp_call *call)
{
	const char *asked = json_string_value(json_object_get(call->params, "protocolVersion"));
	const char *answer = revisions[0];
	struct bytes message;
	struct json json;

	if (!asked) {
		mcp_fail(call, MCP_INVALID_PARAMS, "initialize: protocolVersion must be a text");
		return;
	}
	for (size_t i = 0; i < ARRAY_LENGTH(revisions); i++)
		if (strcmp(asked, revisions[i]) == 0)
			answer = revisions[i];
	call->mcp->initialized = true;
	mcp_begin_result(call, &message, &json);
	emit_key(&json, "protocolVersion");
	emit_string(&json, answer);
	emit_key(&json, "serverInfo");
	write_server(&json);
	write_capabilities(&json);
	mcp_end_result(call, &message, &json);
}

static void discover(struct mcp_call *call)
{
	struct bytes message;
	struct json json;

	mcp_begin_cacheable(call, &message, &json, FRESH_MS, "public");
	emit_key(&json, "supportedVersions");
	emit_begin_array(&json);
	emit_string(&json, STATELESS);
	emit_end_array(&json);
	write_capabilities(&json);
	mcp_end_result(call, &message, &json);
}

static void ping(struct mcp_call *call)
{
	struct bytes message;
	struct json json;

	mcp_begin_result(call, &message, &json);
	mcp_end_result(call, &message, &json);
}

enum { HANDSHAKE = 1, STATELESS_ONLY = 2, LEGACY_ONLY = 4, LISTS = 8 };

static const struct method {
	const char *name;
	unsigned flags; /* HANDSHAKE: also before `initialize` */
	void (*handle)(struct mcp_call *call);
} methods[] = {
	{"initialize", LEGACY_ONLY | HANDSHAKE, initialize},
	{"ping", LEGACY_ONLY | HANDSHAKE, ping},
	{"server/discover", STATELESS_ONLY, discover},
	{"tools/list", LISTS, mcp_list_tools},
	{"tools/call", 0, mcp_call_tool},
	{"resources/list", LISTS, mcp_list_resources},
	{"resources/templates/list", LISTS, mcp_list_templates},
	{"resources/read", 0, mcp_read_resource},
};

/* Settles the revision. False when the call was answered. */
static bool take_revision(struct mcp_call *call, const struct method *method)
{
	const json_t *meta = json_object_get(call->params, "_meta");
	const json_t *version = json_object_get(meta, META_VERSION);

	if (version) {
		json_t *data;

		call->modern = true;
		if (json_is_string(version) && strcmp(json_string_value(version), STATELESS) == 0) {
			if (json_is_object(json_object_get(meta, META_CAPABILITIES)))
				return true;
			mcp_fail(call, MCP_INVALID_PARAMS, "_meta lacks %s", META_CAPABILITIES);
			return false;
		}
		if (!json_is_string(version)) {
			mcp_fail(call, MCP_INVALID_PARAMS, "%s must be a text", META_VERSION);
			return false;
		}
		data = json_pack("{s[s]sO}", "supported", STATELESS, "requested", version);
		send_error(call->mcp, call->id, MCP_UNSUPPORTED_VERSION,
			   "Unsupported protocol version", data);
		json_decref(data);
		end_call(call);
		return false;
	}
	if (call->mcp->initialized || (method && method->flags & HANDSHAKE))
		return true;
	mcp_fail(call, MCP_INVALID_PARAMS,
		 "begin with initialize, or name the protocol version in params._meta[\"%s\"]",
		 META_VERSION);
	return false;
}

static void handle_request(struct mcp_call *call, const char *name)
{
	const struct method *method = NULL;
	unsigned wrong;

	for (size_t i = 0; i < ARRAY_LENGTH(methods) && !method; i++)
		if (strcmp(name, methods[i].name) == 0)
			method = &methods[i];
	if (!take_revision(call, method))
		return;
	wrong = call->modern ? LEGACY_ONLY : STATELESS_ONLY;
	if (!method || method->flags & wrong) {
		mcp_fail(call, MCP_UNKNOWN_METHOD, "Method not found: %.60s", name);
		return;
	}
	if (method->flags & LISTS && json_object_get(call->params, "cursor")) {
		mcp_fail(call, MCP_INVALID_PARAMS, "%s: there is no such cursor", name);
		return;
	}
	method->handle(call);
}

static void handle_notification(struct mcp *mcp, const char *name, const json_t *params)
{
	const json_t *id = json_object_get(params, "requestId");
	struct mcp_call *call;

	if (strcmp(name, "notifications/cancelled") != 0 || !id)
		return;
	TAILQ_FOREACH(call, &mcp->calls, entry)
	if (json_equal(call->id, id) && !call->cancelled)
		break;
	if (!call)
		return;
	call->cancelled = true;
	if (call->ticker)
		event_del(call->ticker);
	if (call->run)
		async_cancel(call->run);
}

/* --- messages ---------------------------------------------------------------------- */

/* Takes the message over. */
static void begin_call(struct mcp *mcp, json_t *message, const json_t *id, const char *method)
{
	struct mcp_call *call, *other;
	const json_t *token;

	TAILQ_FOREACH(other, &mcp->calls, entry)
	if (json_equal(other->id, id) && !other->cancelled)
		break;
	call = other || mcp->call_count >= MCP_CALLS_MAX ? NULL : calloc(1, sizeof *call);
	if (!call) {
		send_error(mcp, id, other ? MCP_INVALID_REQUEST : MCP_INTERNAL_ERROR,
			   other ? "a request of this id is not answered yet"
				 : "too many requests at one time",
			   NULL);
		json_decref(message);
		return;
	}
	call->mcp = mcp;
	call->message = message;
	call->id = id;
	call->params = json_object_get(message, "params");
	call->request = (struct execpy_request){
		.code = "", .files = call->files, .stdin_fd = -1, .out_directory = -1};
	call->get.fd = -1;
	call->began_us = (uint64_t)now_us();
	token = json_object_get(json_object_get(call->params, "_meta"), "progressToken");
	if (json_is_string(token) || json_is_integer(token))
		call->progress_token = token;
	TAILQ_INSERT_TAIL(&mcp->calls, call, entry);
	mcp->call_count++;
	handle_request(call, method);
}

static const char *what_is_wrong(const json_t *message, const json_t *id)
{
	const json_t *version = json_object_get(message, "jsonrpc");

	if (json_is_array(message))
		return "batches are not taken: send one message a line";
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

void mcp_receive(struct mcp *mcp, struct span text)
{
	json_error_t wrong;
	json_t *message =
		json_loadb((const char *)text.data, text.length,
			   JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &wrong);
	const json_t *id = json_object_get(message, "id"), *params;
	const char *reason, *method;
	char words[256];

	if (!message) {
		snprintf(words, sizeof words, "not JSON: %s (column %d)", wrong.text, wrong.column);
		send_error(mcp, NULL, MCP_PARSE_ERROR, words, NULL);
		return;
	}
	reason = what_is_wrong(message, id);
	if (reason) {
		/* Whoever answers us was not asked. */
		if (!json_is_object(message) || json_object_get(message, "method") ||
		    !(json_object_get(message, "result") || json_object_get(message, "error")))
			send_error(mcp, json_is_string(id) || json_is_integer(id) ? id : NULL,
				   MCP_INVALID_REQUEST, reason, NULL);
		json_decref(message);
		return;
	}
	method = json_string_value(json_object_get(message, "method"));
	params = json_object_get(message, "params");
	if (params && !json_is_object(params)) {
		if (id)
			send_error(mcp, id, MCP_INVALID_PARAMS, "params must be an object", NULL);
	} else if (id) {
		begin_call(mcp, message, id, method);
		return;
	} else {
		handle_notification(mcp, method, params);
	}
	json_decref(message);
}

void mcp_refuse_length(struct mcp *mcp)
{
	char words[80];

	snprintf(words, sizeof words, "a message has at most %llu bytes",
		 (unsigned long long)MCP_LINE_BYTES_MAX);
	send_error(mcp, NULL, MCP_INVALID_REQUEST, words, NULL);
}

void mcp_init(struct mcp *mcp, struct execpy_engine *engine, const struct mcp_options *options,
	      void (*send)(void *user, struct bytes *message), void *user)
{
	*mcp = (struct mcp){.engine = engine, .options = options, .send = send, .user = user};
	TAILQ_INIT(&mcp->calls);
	TAILQ_INIT(&mcp->sessions);
}

void mcp_free(struct mcp *mcp)
{
	while (!TAILQ_EMPTY(&mcp->calls))
		end_call(TAILQ_FIRST(&mcp->calls));
	while (!TAILQ_EMPTY(&mcp->sessions)) {
		struct mcp_session *session = TAILQ_FIRST(&mcp->sessions);

		TAILQ_REMOVE(&mcp->sessions, session, entry);
		free(session);
	}
	free(mcp->installed);
	json_decref(mcp->result_schema);
}
