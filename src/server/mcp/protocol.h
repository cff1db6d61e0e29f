/* SPDX-License-Identifier: Apache-2.0 */
/* protocol: what the parts of an MCP server share: what it offers, its clients, their calls.
 *
 * A client is told apart from how it is reached: messages come in by mcp_receive(), and go
 * out by functions that whoever has the connection gives. What is offered is told apart
 * from the protocol, too: tables of methods and tools (offer.c has execpy's). */
#ifndef EXECPY_SERVER_MCP_PROTOCOL_H
#define EXECPY_SERVER_MCP_PROTOCOL_H

#include "server/mcp/mcp.h"

#include "base/bytes.h"
#include "engine/async.h"
#include "engine/json.h"
#include "server/ask.h"
#include "server/tenant.h"

#include <jansson.h>

struct server; /* server/server.h */

#define MCP_STATELESS_REVISION "2026-07-28"
#define MCP_META_REVISION      "io.modelcontextprotocol/protocolVersion"

struct mcp_call;

/* HANDSHAKE: also before `initialize`; LISTS: takes a cursor, and there is none. */
enum { MCP_HANDSHAKE = 1, MCP_STATELESS_ONLY = 2, MCP_LEGACY_ONLY = 4, MCP_LISTS = 8 };

struct mcp_method {
	const char *name;
	unsigned flags;
	void (*handle)(struct mcp_call *call);
};

struct mcp_tool {
	const char *name;
	void (*call)(struct mcp_call *call, const json_t *arguments);
};

/* What a program serves beside initialize, ping and server/discover. Both tables end
 * with an entry without a name. */
struct mcp_offer {
	const char *name, *instructions;
	const char *(*version)(void);
	const struct mcp_method *methods;
	const struct mcp_tool *tools;
	void (*write_capabilities)(struct json *json, bool stateless);
};

struct mcp_session {
	TAILQ_ENTRY(mcp_session) entry;
	char id[EXECPY_SESSION_ID_MAX], template[64];
};

/* What the clients of one owner have in common. */
struct mcp_server {
	struct execpy_engine *engine;
	const struct mcp_offer *offer;
	const struct mcp_options *options;
	struct tenant *tenant; /* whose it is; NULL: of whoever started this process */
	/* Told of each code that was run or checked for a client; or NULL. */
	void (*ran)(const struct mcp_call *call, const struct execpy_result *result);
	void *user;
	TAILQ_HEAD(, mcp_call) over; /* what went on for them is over */
	struct server *http;         /* that has the tenant, and knows whose sessions are whose */
	TAILQ_HEAD(, mcp_session) sessions; /* else: that were opened here */
	size_t session_count;
	char *installed; /* what Python said is; NULL: not asked yet */
	json_t *result_schema;
};

/* What a message is to whoever sends it on. */
enum mcp_kind {
	MCP_NOTICE,  /* more will come */
	MCP_RESULT,  /* a call's answer, as all below */
	MCP_FAILURE, /* an error of what was asked for */
	MCP_REFUSAL, /* an error of the message: nothing was looked for */
	MCP_NO_SUCH_METHOD,
};

/* How a client is reached. `carrier` is what mcp_receive() was given with the message that
 * this is about. Both may be called at any time. */
struct mcp_transport {
	/* Takes over one message, a line with its newline. */
	void (*send)(void *user, void *carrier, enum mcp_kind kind, struct bytes *message);
	/* There will be no answer: the client cancelled its request. NULL: nobody cares. */
	void (*dropped)(void *user, void *carrier);
};

/* Which revisions a client's messages may be of. */
enum mcp_era { MCP_EITHER, MCP_STATELESS, MCP_LEGACY };

struct mcp_client {
	struct mcp_server *server;
	const struct mcp_transport *transport;
	void *user; /* the transport's */
	enum mcp_era era;
	bool initialized; /* by a client of a revision that begins so */
	TAILQ_HEAD(, mcp_call) calls;
	size_t call_count;
};

/* A request that is not answered yet. */
struct mcp_call {
	TAILQ_ENTRY(mcp_call) entry, over_entry;
	struct mcp_client *client;
	struct mcp_server *server;
	void *carrier;
	json_t *message; /* owned; the next three are of it */
	const json_t *id, *params, *progress_token;
	bool modern; /* of the stateless revision */
	bool cancelled;
	/* What goes on for it, and what to do with the outcome: to answer, or to begin
	 * the next step. */
	struct run *run;
	const char *ran_as; /* for records: "mcp execute_python"; NULL: not for a client's code */
	bool check_only;
	bool counted; /* as one of the tenant's runs */
	struct session_room room;
	struct asking *asking;
	bool makes_sessions; /* that is: those in the answer are nobody's until they are remembered
			      */
	struct execpy_session_info *infos; /* the answer */
	size_t info_count;
	char (*ids)[EXECPY_SESSION_ID_MAX]; /* of sessions that it goes through */
	size_t id_count;
	bool over; /* it went on, and what came of it is in the next two */
	struct execpy_result *result;
	struct error why;
	void (*finish)(struct mcp_call *call, struct execpy_result *result,
		       const struct error *why);
	struct ask ask;
	struct hold hold;
	struct workspace_list list;
	struct workspace_get get;
	char session[EXECPY_SESSION_ID_MAX];
	char *name;        /* of the file that is read */
	struct bytes part; /* of the answer */
	size_t part_count, step;
	struct event *ticker;
	uint64_t began_us, output_bytes;
};

/* JSON-RPC's codes, and MCP's. */
enum {
	MCP_PARSE_ERROR = -32700,
	MCP_INVALID_REQUEST = -32600,
	MCP_UNKNOWN_METHOD = -32601,
	MCP_INVALID_PARAMS = -32602,
	MCP_INTERNAL_ERROR = -32603,
	MCP_RESOURCE_NOT_FOUND = -32002, /* before the stateless revision */
	MCP_HEADER_MISMATCH = -32020,
	MCP_MISSING_CAPABILITY = -32021,
	MCP_UNSUPPORTED_VERSION = -32022,
};

/* --- protocol.c: messages -------------------------------------------------------- */

void mcp_server_init(struct mcp_server *server, struct execpy_engine *engine,
		     const struct mcp_offer *offer, const struct mcp_options *options);
/* No client may be left. */
void mcp_server_free(struct mcp_server *server);
void mcp_client_init(struct mcp_client *client, struct mcp_server *server,
		     const struct mcp_transport *transport, void *user);
/* Ends all that goes on, and tells nobody. */
void mcp_client_free(struct mcp_client *client);

/* MCP_WRONG was answered if it can be, and MCP_ANSWER is to be left alone. */
enum mcp_form { MCP_WRONG, MCP_ANSWER, MCP_NOTIFICATION, MCP_REQUEST };
struct mcp_message {
	enum mcp_form form;
	json_t *object; /* owned; the next two are of it; id NULL: a notification */
	const json_t *id, *params;
	const char *method;
};
/* Reads one message, without its newline. */
enum mcp_form mcp_read(struct mcp_client *client, struct span text, void *carrier,
		       struct mcp_message *ret_message);
/* Does what it asks for; takes it over. Not from inside the loop (engine/async.h). */
void mcp_handle(struct mcp_client *client, struct mcp_message *message, void *carrier);
/* Both. */
void mcp_receive(struct mcp_client *client, struct span text, void *carrier);
/* Answers with an error about the message itself; id may be NULL. */
void mcp_refuse(struct mcp_client *client, void *carrier, const json_t *id, int code,
		const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The revision that a request names in its _meta, or NULL; what is no text is NULL, too. */
const char *mcp_revision(const struct mcp_message *message);
/* Whether it is one of those that begin with `initialize`. */
bool mcp_is_legacy_revision(const char *text);
/* A message that was longer than MCP_LINE_BYTES_MAX. */
void mcp_refuse_length(struct mcp_client *client, void *carrier);
/* The method tools/call, of the offer's tools. */
void mcp_call_tool(struct mcp_call *call);

/* --- answer.c: what is sent ------------------------------------------------------- */

/* Begins a notification: the members of its params come next. */
void mcp_begin_notice(struct bytes *message, struct json *json, const char *method);
/* The same for progress, whose token is known; the amount comes next. */
void mcp_begin_progress(struct mcp_call *call, struct bytes *message, struct json *json);
void mcp_end_notice(struct mcp_call *call, struct bytes *message, struct json *json);
/* Begins an answer: the members of its result come next. */
void mcp_begin_result(struct mcp_call *call, struct bytes *message, struct json *json);
/* The same with hints for caches, where the revision has them. */
void mcp_begin_cacheable(struct mcp_call *call, struct bytes *message, struct json *json,
			 uint64_t fresh_ms, const char *scope);
/* Ends and sends it; the call is gone. */
void mcp_end_result(struct mcp_call *call, struct bytes *message, struct json *json);
void mcp_write_text_block(struct json *json, struct span text);
/* A tool's result: its content begins with this text, if it is not empty, and more blocks
 * may follow; at its end stands the object of the output schema, if there is one. */
void mcp_begin_tool_result(struct mcp_call *call, struct bytes *message, struct json *json,
			   struct span text);
void mcp_end_tool_result(struct mcp_call *call, struct bytes *message, struct json *json,
			 struct span structured, bool is_error);
/* What a model can mend by itself is told as a result. The call is gone. */
void mcp_tool_error(struct mcp_call *call, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Answers with an error; the call is gone. */
void mcp_fail(struct mcp_call *call, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same with what else there is to say about it, which it takes over; NULL: nothing. */
void mcp_fail_with(struct mcp_call *call, enum mcp_kind kind, int code, const char *text,
		   json_t *data);
void mcp_resource_not_found(struct mcp_call *call, const char *uri);
/* An error that is not about a call. */
void mcp_send_error(struct mcp_client *client, void *carrier, enum mcp_kind kind, const json_t *id,
		    int code, const char *text, const json_t *data);
/* {name, version} */
void mcp_write_implementation(const struct mcp_offer *offer, struct json *json);

/* --- calls.c: what goes on -------------------------------------------------------- */

/* Takes the message over. NULL: it was refused. */
struct mcp_call *mcp_call_new(struct mcp_client *client, struct mcp_message *message,
			      void *carrier);
void mcp_call_free(struct mcp_call *call);
/* There will be no answer to the request of this id. */
void mcp_cancel(struct mcp_client *client, const json_t *id);
/* Begins what the call asks for, in call->session when that is named; its request must
 * be filled. Negative: `finish` will not be called. */
int mcp_begin(struct mcp_call *call, const struct async *what, struct error *err);
/* The same for a question about sessions: call->infos is the answer. Sessions that come
 * to be so end with the call, unless call->makes_sessions is taken back. */
int mcp_begin_asking(struct mcp_call *call, const struct session_question *question,
		     struct error *err);
/* Goes on with the calls of which something is over. Not from inside the loop. */
void mcp_proceed(struct mcp_server *server);

/* --- what execpy offers ------------------------------------------------------------ */

extern const struct mcp_offer mcp_python_offer; /* offer.c */

/* tools.c */
void mcp_list_tools(struct mcp_call *call);
void mcp_execute(struct mcp_call *call, const json_t *arguments);
void mcp_check(struct mcp_call *call, const json_t *arguments);
/* Refuses what is none of these names; the last is NULL. False when it did. */
bool mcp_known_arguments(struct mcp_call *call, const json_t *arguments, const char *const *names);
/* A text without a NUL, or NULL. False when it is there and is none. */
bool mcp_text_argument(struct mcp_call *call, const json_t *arguments, const char *name,
		       const char **ret_text);
/* Limits that the arguments name, and the server's for the others. False when they were
 * refused. */
bool mcp_limit_arguments(struct mcp_call *call, const json_t *arguments, bool in_session,
			 struct execpy_limits *ret_limits);

/* describe.c */
void mcp_write_tools(struct mcp_server *server, struct json *json);
/* Code that prints what is installed. */
extern const char mcp_survey[];
extern const size_t mcp_survey_length;

/* sessions.c */
void mcp_tool_session(struct mcp_call *call, const json_t *arguments);
/* A tenant uses its own; else whoever was given an id may use it. */
bool mcp_may_use_session(const struct mcp_server *server, const char *id);
/* Those that lists hold, into call->ids. False when the call was answered. */
bool mcp_collect_sessions(struct mcp_call *call);
/* It is in no list any more. */
void mcp_forget_session(struct mcp_server *server, const char *id);

/* resources.c */
void mcp_list_resources(struct mcp_call *call);
void mcp_list_templates(struct mcp_call *call);
void mcp_read_resource(struct mcp_call *call);
/* execpy://session/ID/PATH */
void mcp_write_uri(struct json *json, const char *session, const char *path);

#endif
