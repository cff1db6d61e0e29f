/* SPDX-License-Identifier: Apache-2.0 */
/* mcp: a Model Context Protocol server (docs/mcp.md). */
#ifndef EXECPY_SERVER_MCP_H
#define EXECPY_SERVER_MCP_H

#include "base/error.h"
#include "engine/execpy.h"
#include "policy/limits.h"

struct mcp_options {
	const char *policy, *template; /* of calls; NULL: the defaults */
	struct limits limits;          /* of a call that asks for none */
	struct limits ceilings;        /* what a call may ask for */
	bool truncate_output;          /* keep head and tail instead of ending the run */
};

/* What a call may ask for where nobody says. */
struct limits mcp_ceilings(void);

/* Serves one client over stdin and stdout until stdin ends, or SIGTERM or SIGINT comes:
 * 0. Runs that go on are ended. -EINVAL for a policy that
 * cannot be read; negative also when the engine has ended. */
int mcp_serve(struct execpy_engine *engine, const struct mcp_options *options, struct error *err);

#endif
