/* SPDX-License-Identifier: Apache-2.0 */
/* headers: what the fields of a POST say of the message that is its body. */
#ifndef EXECPY_SERVER_MCP_HEADERS_H
#define EXECPY_SERVER_MCP_HEADERS_H

#include "server/mcp/protocol.h"

/* Their values; NULL where there is no such field. */
struct mcp_headers {
	const char *revision; /* MCP-Protocol-Version */
	const char *method;   /* Mcp-Method */
	const char *name;     /* Mcp-Name */
	const char *session;  /* Mcp-Session-Id */
};

/* Which era a request or notification is of, and that its fields and its body agree where
 * that era asks for it. Negative: a code of JSON-RPC and the reason. */
int mcp_judge_headers(const struct mcp_headers *headers, const struct mcp_message *message,
		      enum mcp_era *ret_era, struct error *err);

/* Whether a list of media ranges (RFC 9110, 12.5.1) has one that takes this type; NULL takes
 * all. Weights other than 0 are not looked at. */
bool mcp_accepts(const char *ranges, const char *type, const char *subtype);
/* Whether the body is JSON. */
bool mcp_is_json(const char *content_type);

#endif
