/* SPDX-License-Identifier: Apache-2.0 */
/* protocol: what the parts of the MCP server share: a client, and its calls.
 *
 * A client is told apart from how it is reached: messages come in by mcp_receive(),
 * and go out by a function that whoever has the connection gives. */
#ifndef EXECPY_SERVER_MCP_PROTOCOL_H
#define EXECPY_SERVER_MCP_PROTOCOL_H

#include "server/mcp/mcp.h"

#include "base/bytes.h"
#include "engine/async.h"
#include "engine/json.h"

#include <jansson.h>

struct mcp_session {
	TAILQ_ENTRY(mcp_session) entry;
	char id[EXECPY_SESSION_ID_MAX], template[64];
};

struct mcp {
	struct execpy_engine *engine;
	const struct mcp_options *options;
	/* Takes over one message, a line with its newline. May be called at any time. */
	void (*send)(void *user, struct bytes *message);
	void *user;
	bool initialized; /* by a client of a revision that begins so */
	TAILQ_HEAD(, mcp_call) calls;
	size_t call_count;
	TAILQ_HEAD(, mcp_session) sessions; /* that were opened here */
	size_t session_count;
	char *installed; /* what Python said is; NULL: not asked yet */
	json_t *result_schema;
};

/* A request that is not answered yet. */
struct mcp_call {
	TAILQ_ENTRY(mcp_call) entry;
	struct mcp *mcp;
	json_t *message; /* owned; the next three are of it */
	const json_t *id, *params, *progress_token;
	bool modern; /* of the stateless revision */
	bool cancelled;
	/* What goes on for it, and what to do with the outcome: to answer, or to begin
	 * the next step. */
	struct run *run;
	struct opening *opening;
	struct execpy_session_info opened; /* id "": none was */
	bool over;                         /* it went on, and what came of it is in the next two */
	struct execpy_result *result;
	struct error why;
	void (*finish)(struct mcp_call *call, struct execpy_result *result,
		       const struct error *why);
	struct execpy_request request;
	struct execpy_file files[MCP_FILES_MAX];
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
	MCP_UNSUPPORTED_VERSION = -32022,
};

/* protocol.c */
void mcp_init(struct mcp *mcp, struct execpy_engine *engine, const struct mcp_options *options,
	      void (*send)(void *user, struct bytes *message), void *user);
/* One message, without its newline. Not from inside the loop (engine/async.h). */
void mcp_receive(struct mcp *mcp, struct span message);
/* Goes on with the calls of which something is over. Not from inside the loop. */
void mcp_proceed(struct mcp *mcp);
/* A message that was longer than MCP_LINE_BYTES_MAX. */
void mcp_refuse_length(struct mcp *mcp);
/* Ends all that goes on, and tells nobody. */
void mcp_free(struct mcp *mcp);

/* Begins an answer: the members of its result come next. */
void mcp_begin_result(struct mcp_call *call, struct bytes *message, struct json *json);
/* The same with hints for caches, where the revision has them. */
void mcp_begin_cacheable(struct mcp_call *call, struct bytes *message, struct json *json,
			 uint64_t fresh_ms, const char *scope);
/* Ends and sends it; the call is gone. */
void mcp_end_result(struct mcp_call *call, struct bytes *message, struct json *json);
/* Answers with an error; the call is gone. */
void mcp_fail(struct mcp_call *call, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void mcp_resource_not_found(struct mcp_call *call, const char *uri);
/* Begins what the call asks for, in call->session when that is named; its request must
 * be filled. Negative: `finish` will not be called. */
int mcp_begin(struct mcp_call *call, const struct async *what, struct error *err);
/* The same for a session: call->opened says what it is like, or `why` why there is none. */
int mcp_begin_session(struct mcp_call *call, const struct execpy_session_options *options,
		      struct error *err);

/* tools.c */
void mcp_list_tools(struct mcp_call *call);
void mcp_call_tool(struct mcp_call *call);
/* A tool's result: its content begins with this text, and more blocks may follow; at
 * its end stands the object of the output schema, if there is one. */
void mcp_begin_tool_result(struct mcp_call *call, struct bytes *message, struct json *json,
			   struct span text);
void mcp_end_tool_result(struct mcp_call *call, struct bytes *message, struct json *json,
			 struct span structured, bool is_error);
/* What a model can mend by itself is told as a result. The call is gone. */
void mcp_tool_error(struct mcp_call *call, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Refuses what is none of these names; the last is NULL. False when it did. */
bool mcp_known_arguments(struct mcp_call *call, const json_t *arguments, const char *const *names);
/* A text without a NUL, or NULL. False when it is there and is none. */
bool mcp_text_argument(struct mcp_call *call, const json_t *arguments, const char *name,
		       const char **ret_text);
/* Limits that the arguments name. False when they were refused. */
bool mcp_limit_arguments(struct mcp_call *call, const json_t *arguments, bool in_session,
			 struct execpy_limits *limits);
struct execpy_limits mcp_limits(const struct limits *limits);

/* describe.c */
void mcp_write_tools(struct mcp *mcp, struct json *json);
const char *mcp_instructions(void);
/* Code that prints what is installed. */
extern const char mcp_survey[];
extern const size_t mcp_survey_length;

/* sessions.c */
void mcp_tool_session(struct mcp_call *call, const json_t *arguments);
/* It is in no list any more. */
void mcp_forget_session(struct mcp *mcp, const char *id);

/* resources.c */
void mcp_list_resources(struct mcp_call *call);
void mcp_list_templates(struct mcp_call *call);
void mcp_read_resource(struct mcp_call *call);
/* execpy://session/ID/PATH */
void mcp_write_uri(struct json *json, const char *session, const char *path);

#endif
