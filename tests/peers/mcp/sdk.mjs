// The official SDK for TypeScript against belljar, over both transports.

import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  ElicitRequestSchema, ErrorCode, LoggingMessageNotificationSchema, McpError,
} from "@modelcontextprotocol/sdk/types.js";

const { BELLJAR: command, BELLJAR_HOME, BELLJAR_URL: url, HOME, PATH } = process.env;

const transports = {
  stdio: () =>
    new StdioClientTransport({ command, args: ["mcp"], env: { BELLJAR_HOME, HOME, PATH } }),
  http: () => new StreamableHTTPClientTransport(new URL(url)),
};

const text = (result) =>
  result.content.filter((part) => part.type === "text").map((part) => part.text).join("");

const read = (path) => ({ name: "file_read", arguments: { path } });

async function connected(transport, answer) {
  const capabilities = answer ? { elicitation: {} } : {};
  const client = new Client({ name: "sdk", version: "1" }, { capabilities });
  if (answer) client.setRequestHandler(ElicitRequestSchema, answer);
  await client.connect(transport());
  return client;
}

async function checks(transport) {
  const asked = [];
  const client = await connected(transport, async (request) => {
    asked.push(request.params.message);
    return { action: "accept", content: { answer: "yes" } };
  });
  assert.equal(client.getServerVersion().name, "belljar");
  await client.ping();
  const { tools } = await client.listTools();
  const names = tools.map((tool) => tool.name);
  for (const name of ["file_read", "file_list", "file_write", "agent_clerk"]) {
    assert.ok(names.includes(name), name);
  }
  assert.match(text(await client.callTool({ name: "file_list", arguments: {} })), /note\.txt/);
  assert.match(text(await client.callTool(read("note.txt"))), /tide turns/);
  assert.match(asked.join(), /file_read/);
  const attached = await client.callTool({ name: "attach_file", arguments: { path: "dot.png" } });
  assert.ok(attached.content.some((part) => part.type === "image"), JSON.stringify(attached));

  const progress = [];
  const told = await client.callTool(
    { name: "agent_clerk", arguments: { task: "when is high water?" } },
    undefined,
    { onprogress: (report) => progress.push(report.progress) },
  );
  assert.equal(text(told), "High water is at 06:12.");
  assert.deepEqual(progress, [...progress].sort((one, other) => one - other));

  await client.callTool({ name: "file_write", arguments: { path: "ts.txt", content: "low water\n" } });
  const { resources } = await client.listResources();
  const changes = resources.find((resource) => resource.name === "changes");
  const patch = await client.readResource({ uri: changes.uri });
  assert.match(patch.contents[0].text, /\+low water/);
  const prompt = await client.getPrompt({ name: "tides", arguments: { task: "when?" } });
  assert.match(prompt.messages[0].content.text, /Count from six\./);

  client.setNotificationHandler(LoggingMessageNotificationSchema, () => {});
  await client.setLoggingLevel("debug");
  const error = await client.callTool({ name: "nothing", arguments: {} }).then(
    () => assert.fail("an unknown tool was called"),
    (error) => error,
  );
  assert.ok(error instanceof McpError && error.code === ErrorCode.InvalidParams, String(error));

  // A call that is given up leaves the session as it was.
  const given = new AbortController();
  const never = client.callTool(read("note.txt"), undefined, { signal: given.signal });
  given.abort();
  await assert.rejects(never);
  const many = Array.from({ length: 300 }, () => client.callTool({ name: "file_list", arguments: {} }));
  for (const result of await Promise.all(many)) assert.match(text(result), /note\.txt/);
  await client.close();

  for (const answer of [async () => ({ action: "decline" }), undefined]) {
    const client = await connected(transport, answer);
    const refused = await client.callTool(read("note.txt"));
    assert.ok(refused.isError && !text(refused).includes("tide"), JSON.stringify(refused));
    await client.close();
  }
}

for (const [name, transport] of Object.entries(transports)) {
  await checks(transport);
  console.log(`sdk.mjs ${name}: as expected`);
}
process.exit(0);
