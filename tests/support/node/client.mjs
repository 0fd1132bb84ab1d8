// Talks to the MCP server through the TypeScript SDK and prints what it saw as one JSON object.
//
//   node client.mjs stdio COMMAND [ARGUMENT…]
//   node client.mjs http URL TOKEN

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [kind, ...rest] = process.argv.slice(2);
const transport =
  kind === "http"
    ? new StreamableHTTPClientTransport(new URL(rest[0]), {
        requestInit: { headers: { Authorization: `Bearer ${rest[1]}` } },
      })
    : new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env, stderr: "inherit" });

const client = new Client({ name: "second-client", version: "1.0.0" });
const complaints = [];
client.onerror = (error) => complaints.push(String(error));

const seen = {};
await client.connect(transport);
seen.server = client.getServerVersion();
seen.instructions = client.getInstructions();
seen.capabilities = client.getServerCapabilities();
seen.tools = (await client.listTools()).tools; // from here on it checks every answer against the tool's output schema
const call = (name, args) => client.callTool({ name, arguments: args });
seen.saved = await call("memory_append", { text: "The kingfisher nests under bridge eleven." });
seen.found = await call("memory_search", { query: "where does the kingfisher nest?", maxResults: 3 });
seen.read = await call("memory_get", { path: seen.saved.structuredContent.path });
seen.wrong = await call("memory_search", { question: "?" });
seen.missing = await call("memory_get", { path: "memory/none.md" });
seen.preview = await call("memory_forget", { what: "kingfisher" });
seen.forgotten = await call("memory_forget", {
  what: "kingfisher",
  confirm: seen.preview.content[0].text.match(/"confirm": "(\w+)"/)[1],
});
seen.status = await call("memory_status", {});
seen.resources = (await client.listResources()).resources;
seen.templates = (await client.listResourceTemplates()).resourceTemplates;
seen.contents = (await client.readResource({ uri: "memory:///MEMORY.md" })).contents;
seen.unknown = await client.readResource({ uri: "memory:///none.md" }).catch((error) => error.code);
seen.prompts = (await client.listPrompts()).prompts;
seen.prompt = await client.getPrompt({ name: "recall", arguments: { question: "which VLAN is the printer on" } });
await Promise.all(Array.from({ length: 20 }, (_, number) => call("memory_search", { query: `printer ${number}` })));
await client.ping();
if (kind === "http") await transport.terminateSession();
await client.close();
seen.complaints = complaints;
console.log(JSON.stringify(seen));
