// SPDX-License-Identifier: Apache-2.0
// One conversation as an agent has it with execpy's tools, by a client that others wrote: an error,
// its correction, a session and a plot. Prints what came back as JSON.
//
// usage: conversation.mjs CLIENT ERA TARGET…   CLIENT is sdk, client or langchain; ERA is legacy,
// auto or modern (sdk and langchain know legacy only); TARGET is a URL, or a command with its words.
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OldHttp }
  from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [kind, era, ...target] = process.argv.slice(2);
const isUrl = target[0].startsWith("http");
const key = process.env.EXECPY_KEY;
const headers = key ? { Authorization: `Bearer ${key}` } : {};
const stdio = { command: target[0], args: target.slice(1), env: process.env, stderr: "inherit" };
const name = { name: "conversation", version: "1" };

async function connectSdk() {
  const client = new OldClient(name);
  const transport = isUrl
    ? new OldHttp(new URL(target[0]), { requestInit: { headers } })
    : new OldStdio(stdio);
  await client.connect(transport);
  return {
    tools: (await client.listTools()).tools.map((tool) => tool.name),
    call: (tool, args, onprogress) =>
      client.callTool({ name: tool, arguments: args }, undefined, { onprogress }),
    read: (uri) => client.readResource({ uri }),
    ping: () => client.ping(),
    close: async () => {
      if (isUrl) await transport.terminateSession();
      await client.close();
    },
  };
}

async function connectClient() {
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const mode = era === "modern" ? { pin: "2026-07-28" } : era;
  const client = new Client(name, { versionNegotiation: { mode } });
  await client.connect(isUrl
    ? new StreamableHTTPClientTransport(new URL(target[0]), { requestInit: { headers } })
    : new StdioClientTransport(stdio));
  return {
    era: client.getProtocolEra(),
    tools: (await client.listTools()).tools.map((tool) => tool.name),
    call: (tool, args, onprogress) =>
      client.callTool({ name: tool, arguments: args }, { onprogress }),
    read: (uri) => client.readResource({ uri }),
    close: () => client.close(),
  };
}

// An agent's tool gives a model content, and throws what is an error.
async function connectLangchain() {
  const { MultiServerMCPClient } = await import("@langchain/mcp-adapters");
  const client = new MultiServerMCPClient({
    mcpServers: {
      execpy: isUrl ? { transport: "http", url: target[0], headers } : { transport: "stdio", ...stdio },
    },
  });
  const tools = await client.getTools();
  const byName = Object.fromEntries(tools.map((tool) => [tool.name, tool]));
  return {
    tools: tools.map((tool) => tool.name),
    call: async (tool, args) => {
      try {
        const message = await byName[tool].invoke(
          { name: tool, args, id: "call", type: "tool_call" });
        const { content, artifact } = message;
        const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
        return {
          isError: message.status === "error",
          content: blocks.map((block) => block.type === "image_url" ? { type: "image" } : block),
          structuredContent: artifact?.structuredContent ??
            artifact?.find?.((part) => part.type === "mcp_structured_content")?.data,
        };
      } catch (error) {
        return { isError: true, content: [{ type: "text", text: String(error.message) }] };
      }
    },
    close: () => client.close(),
  };
}

const connect = { sdk: connectSdk, client: connectClient, langchain: connectLangchain }[kind];
const server = await connect();
const said = { era: server.era ?? "legacy", tools: server.tools };
const textOf = (result) =>
  result.content.filter((block) => block.type === "text").map((block) => block.text).join("");
const short = (result) => ({
  isError: result.isError === true,
  text: textOf(result),
  kinds: result.content.map((block) => block.type),
});

if (server.ping) await server.ping();
said.wrong = short(await server.call("execute_python", { code: "prices = [3, 4]\nprint(sum(price))" }));
said.right = short(await server.call("execute_python", { code: "prices = [3, 4]\nprint(sum(prices))" }));
said.verdict = short(await server.call("check_python", { code: "import socket" }));

const opened = await server.call("python_session", {
  action: "create", memory_bytes: 400 * 2 ** 20, time_ms: 20000,
});
const id = /session (\S+):/.exec(textOf(opened))[1];
await server.call("execute_python", { code: "total = 40", session: id });
said.kept = short(await server.call("execute_python", { code: "total + 2", session: id }));
const plot = await server.call("execute_python", {
  session: id,
  code: "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nopen('note.txt', 'w').write('kept')",
});
said.plot = short(plot);
if (server.read) {
  const link = plot.content.find((block) => block.type === "resource_link");
  said.file = (await server.read(link.uri)).contents[0].text;
  const heard = [];
  await server.call("execute_python", { code: "import time; time.sleep(1.4)", session: id },
    (progress) => heard.push(progress.message));
  said.progress = heard.length;
}
said.ended = short(await server.call("python_session", { action: "end", session: id }));
await server.close();
console.log(JSON.stringify(said));
