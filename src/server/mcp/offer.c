/* SPDX-License-Identifier: Apache-2.0 */
/* offer: what execpy serves over MCP. */
#include "server/mcp/protocol.h"

struct limits mcp_ceilings(void)
{
	return (struct limits){
		.time_ms = MCP_TIME_MS_MAX,
		.cpu_ms = MCP_TIME_MS_MAX,
		.memory_bytes = MCP_MEMORY_BYTES_MAX,
		.processes = MCP_PROCESSES_MAX,
		.output_bytes = MCP_OUTPUT_BYTES_MAX,
		.disk_bytes = MCP_DISK_BYTES_MAX,
	};
}

static void write_capabilities(struct json *json, bool stateless)
{
	static const char *const kinds[] = {"tools", "resources"};

	for (size_t i = 0; i < 2; i++) {
		emit_key(json, kinds[i]);
		emit_begin_object(json);
		emit_end_object(json);
	}
}

static const struct mcp_method methods[] = {
	{"tools/list", MCP_LISTS, mcp_list_tools},
	{"tools/call", 0, mcp_call_tool},
	{"resources/list", MCP_LISTS, mcp_list_resources},
	{"resources/templates/list", MCP_LISTS, mcp_list_templates},
	{"resources/read", 0, mcp_read_resource},
	{NULL, 0, NULL},
};

static const struct mcp_tool tools[] = {
	{"execute_python", mcp_execute},
	{"check_python", mcp_check},
	{"python_session", mcp_tool_session},
	{NULL, NULL},
};

const struct mcp_offer mcp_python_offer = {
	.name = "execpy",
	.version = execpy_version,
	.instructions =
		"Runs Python in a sandbox: execute_python for code, check_python to learn whether "
		"code would be refused, python_session for variables and files that stay from call "
		"to call. Files of sessions are resources.",
	.methods = methods,
	.tools = tools,
	.write_capabilities = write_capabilities,
};
