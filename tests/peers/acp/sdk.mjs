// The official TypeScript client, with what is not stable yet, against `belljar acp`.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk/unstable";

const { BELLJAR: belljar, BELLJAR_HOME: home, WORKSPACE: cwd, LATER: later } = process.env;
const { agent: methods, client: ours } = acp.methods;
const place = { cwd, mcpServers: [] };

/** Starts an agent, and does `work` with it as an editor. */
async function editor(work) {
  const child = spawn(belljar, ["acp", "--agent", "clerk"], {
    cwd,
    stdio: ["pipe", "pipe", "inherit"],
  });
  let worked;
  const updates = [];
  const waiting = new Set();
  const asked = [];
  const app = acp
    .client({ name: "test" })
    .onRequest(ours.session.requestPermission, ({ params }) => {
      asked.push(params);
      const yes = params.options.find((option) => option.kind === "allow_once");
      return { outcome: { outcome: "selected", optionId: yes.optionId } };
    })
    .onNotification(ours.session.update, ({ params }) => {
      updates.push(params);
      for (const look of waiting) look();
    });
  const seen = (condition) =>
    new Promise((done) => {
      const look = () => {
        if (!updates.some(condition)) return;
        waiting.delete(look);
        done();
      };
      waiting.add(look);
      look();
    });
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const served = app.connectWith(stream, async (to) => {
    const hello = await to.request(methods.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: { subagents: {}, session: { notices: {}, compaction: {} } },
    });
    assert.equal(hello.protocolVersion, acp.PROTOCOL_VERSION);
    assert.equal(hello.agentCapabilities.loadSession, true);
    assert.equal(hello.agentCapabilities.promptCapabilities.image, true);
    worked = work({ to, updates, asked, seen, child });
    await worked;
  });
  // Where the work ends with a killed agent, the connection is closed before its end.
  await served.catch((error) => worked ?? Promise.reject(error));
  child.kill("SIGKILL");
}

const says = (to, sessionId, text) =>
  to.request(methods.session.prompt, { sessionId, prompt: [{ type: "text", text }] });

const words = (updates, session) =>
  updates
    .filter(({ sessionId, update }) =>
      sessionId === session && update.sessionUpdate === "agent_message_chunk")
    .map(({ update }) => update.content.text)
    .join("");

const of = (updates, session, kind) =>
  updates
    .filter(({ sessionId, update }) => sessionId === session && update.sessionUpdate === kind)
    .map(({ update }) => update);

let session;
let child;

await editor(async ({ to, updates, asked, seen, child: agent }) => {
  const made = await to.request(methods.session.new, place);
  session = made.sessionId;
  assert.equal(made.modes.currentModeId, "home/clerk");
  await to.request(methods.session.setMode, { sessionId: session, modeId: "home/clerk" });

  const read = await says(to, session, "what is here?");
  assert.equal(read.stopReason, "end_turn");
  assert.equal(words(updates, session), "Reading. There is one note.");
  assert.equal(asked.length, 1, "the grant says `ask`");
  assert.equal(asked[0].toolCall.kind, "read");

  await says(to, session, "write");
  const diffs = of(updates, session, "tool_call").flatMap(({ content }) => content ?? []);
  assert.ok(diffs.some(({ type, newText }) => type === "diff" && newText === "new\n"));

  await says(to, session, "send somebody");
  child = of(updates, session, "subagent_update")[0].sessionId;
  assert.equal(words(updates, child), "I have looked.");

  await assert.rejects(
    to.request(methods.session.load, { ...place, sessionId: "nobody" }),
    (error) => error.code === -32002,
  );
  const interrupted = assert.rejects(says(to, session, "and then?"));
  await seen(({ update }) => update.content?.text === "Half.");
  agent.kill("SIGKILL");
  await interrupted;
});

writeFileSync(`${home}/transcript.yaml`, later);

await editor(async ({ to, updates, seen }) => {
  const listed = await to.request(methods.session.list, {});
  assert.deepEqual(listed.sessions.map(({ sessionId }) => sessionId), [session]);
  await to.request(methods.session.load, { ...place, sessionId: session });
  const asked = of(updates, session, "user_message_chunk").map(({ content }) => content.text);
  assert.deepEqual(asked, ["what is here?", "write", "send somebody", "and then?"]);
  assert.equal(words(updates, child), "I have looked.", "the child is there again");
  await seen(({ update }) => update.content?.text === "The rest.");
  const more = await says(to, session, "more");
  assert.equal(more.stopReason, "end_turn");
  await to.request(methods.session.close, { sessionId: session });
  await to.request(methods.session.delete, { sessionId: session });
});

console.log("@agentclientprotocol/sdk: sessions, prompts, permission, changes, a child, kill and load");
process.exit(0);
