// What others still get of a server that 200 tabs look at.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { Agent, get } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { at } from "../kit/at.ts";
import type { Jar } from "../kit/jar.ts";
import { expect, Gate, test } from "../kit/test.ts";
import { quantile, spread, tell } from "./numbers.ts";

test.use({ plan: {} });

const TABS = 200;
/** Of these, pages in a browser. */
const PAGES = 4;
const CALLS = 600;

const agent = new Agent({ keepAlive: true, maxSockets: 1 });

async function call(url: string): Promise<number> {
  const begun = performance.now();
  await new Promise<void>((done, fail) => get(url, { agent }, (answer) => answer.on("end", done).resume()).on("error", fail));
  return performance.now() - begun;
}

/** How long calls of the API take, one after the other. */
async function latency(jar: Jar, session: string): Promise<number[]> {
  const paths = [`/v1/sessions/${session}`, `/v1/sessions/${session}/messages?limit=50`, "/v1/sessions?limit=50", "/v1/agents"];
  const times: number[] = [];
  for (let turn = 0; turn < CALLS; turn += 1) {
    times.push(await call(jar.url + (paths[turn % paths.length] ?? "")));
    // A person's tools, not a flood.
    await new Promise((done) => setTimeout(done, 5));
  }
  return times;
}

test("200 tabs on one server", async ({ page, tab, jar, word }) => {
  for (let turn = 0; turn < 60; turn += 1) await jar.chat("teller", `Session ${turn} of ${word}.`);
  const gates = [...Array(400).keys()].map(() => new Gate());
  const ask = `Go on slowly, ${word}.`;
  jar.model.play(ask, { say: gates.flatMap((gate, index) => [gate, `n${index}. `]) });
  const session = await jar.begin("teller", ask);
  await latency(jar, session);
  const before = await latency(jar, session);
  const tabs = spawn(process.execPath, [join(import.meta.dirname, "tabs.mjs"), jar.url, session, String(TABS - PAGES)], { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface({ input: tabs.stdout });
  await once(lines, "line");
  const pages = [page];
  while (pages.length < PAGES) pages.push(await tab());
  for (const one of pages) {
    await one.goto(`/sessions/${session}`);
    await expect(at(one).conversation()).toContainText(ask);
  }
  const idle = await latency(jar, session);
  // Four events a second, for all of them.
  let open = 0;
  const timer = setInterval(() => gates[open++]?.open(), 250);
  const busy = await latency(jar, session);
  clearInterval(timer);
  await expect(at(page).conversation()).toContainText(`n${open - 1}.`);
  for (const gate of gates) gate.open();
  tabs.kill("SIGTERM");
  const [said] = await once(lines, "line");
  await jar.idle(session);
  const after = await latency(jar, session);
  const alone = [...before, ...after];
  tell("API latency, nobody looks", spread(alone, "ms"));
  tell(`API latency, ${TABS} tabs look at a session that rests`, spread(idle, "ms"));
  tell(`API latency, ${TABS} tabs look at a session that speaks`, spread(busy, "ms"), String(said));
  const ratio = (times: number[], part: number) => (quantile(times, part) / quantile(alone, part)).toFixed(2);
  tell("API latency ratio (reach 1.2)", `median ${ratio(idle, 0.5)} resting, ${ratio(busy, 0.5)} speaking`, `p90 ${ratio(idle, 0.9)} resting, ${ratio(busy, 0.9)} speaking`);
});
