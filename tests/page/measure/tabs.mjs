// So many tabs, as the server meets them: each has a WebSocket that watches a session, and asks now and then
// for questions and sessions, as a page that is seen does. A process of its own, so that who measures beside
// it does not wait for it. `node tabs.mjs URL SESSION COUNT`; says `ready` when all are connected.

import { Agent, get, request } from "node:http";
import { randomBytes } from "node:crypto";

const [url, session, count] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true, maxSockets: Number(count) });
const { host } = new URL(url);
let events = 0;

/** A text frame from a client, which has to be masked. */
function frame(text) {
  const data = Buffer.from(text);
  const mask = randomBytes(4);
  const head = data.length < 126 ? Buffer.from([0x81, 0x80 | data.length]) : Buffer.from([0x81, 0x80 | 126, data.length >> 8, data.length & 255]);
  return Buffer.concat([head, mask, data.map((byte, at) => byte ^ mask[at % 4])]);
}

function watch() {
  return new Promise((done, fail) => {
    const headers = { host, upgrade: "websocket", connection: "Upgrade", "sec-websocket-version": "13", "sec-websocket-protocol": "belljar.v1", "sec-websocket-key": randomBytes(16).toString("base64") };
    const asked = request(`${url}/v1/ws`, { headers });
    asked.on("upgrade", (_, socket) => {
      socket.on("data", (data) => (events += data.toString("latin1").split('"type":"event"').length - 1));
      socket.write(frame(JSON.stringify({ type: "subscribe", session })));
      setInterval(() => socket.write(frame('{"type":"ping"}')), 15_000);
      done();
    });
    asked.on("response", (answer) => fail(new Error(`${answer.statusCode}`)));
    asked.on("error", fail).end();
  });
}

const poll = (path) => get(url + path, { agent }, (answer) => answer.resume()).on("error", () => undefined);

for (let tab = 0; tab < Number(count); tab += 1) {
  await watch();
  const begin = Math.random();
  setTimeout(() => setInterval(() => poll("/v1/questions"), 3_000), begin * 3_000);
  setTimeout(() => setInterval(() => poll("/v1/sessions?limit=50"), 5_000), begin * 5_000);
}
console.log("ready");
process.on("SIGTERM", () => {
  console.log(`${events} events`);
  process.exit(0);
});
