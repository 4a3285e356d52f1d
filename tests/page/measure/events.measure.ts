// From the moment in which an event is stored to the frame in which it is seen. The server tells its watchers
// of events when they are stored, so a bare client beside the page hears of one when it is.

import { at } from "../kit/at.ts";
import { expect, Gate, test } from "../kit/test.ts";
import { spread, tell } from "./numbers.ts";

test.use({ plan: {} });

const EVENTS = 300;
const EVERY = 30;

test("event shown after it was stored", async ({ page, jar, word }) => {
  const gates = [...Array(EVENTS).keys()].map(() => new Gate());
  const ask = `Count slowly, ${word}.`;
  jar.model.play(ask, { say: gates.flatMap((gate, index) => [gate, `n${index}. `]) });
  await page.addInitScript(() => {
    const seen: Record<string, number> = ((window as unknown as { seen: Record<string, number> }).seen = {});
    let known = 0;
    const look = () => {
      const text = document.querySelector(".transcript")?.textContent ?? "";
      const fresh: number[] = [];
      while (text.includes(`n${known}.`)) fresh.push(known++);
      // A frame has it when the next one begins.
      if (fresh.length > 0) requestAnimationFrame(() => fresh.forEach((one) => (seen[one] = performance.timeOrigin + performance.now())));
    };
    new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
  });
  const session = await jar.begin("teller", ask);
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText(ask);
  const heard: Record<string, number> = {};
  const stored: Record<string, number> = {};
  const client = listen(`${jar.url}/v1/sessions/${session}/events`, (event) => {
    if (event.type !== "text_delta") return;
    for (const [, one] of String(event.text).matchAll(/n(\d+)\./g)) {
      if (!one) continue;
      heard[one] = performance.timeOrigin + performance.now();
      stored[one] = event.at;
    }
  });
  for (const gate of gates) {
    gate.open();
    await new Promise((done) => setTimeout(done, EVERY));
  }
  await expect(at(page).conversation()).toContainText(`n${EVENTS - 1}.`);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await client;
  const seen = await page.evaluate(() => (window as unknown as { seen: Record<string, number> }).seen);
  // The first ones come with the page itself.
  const of = Object.keys(heard).filter((one) => Number(one) >= 10 && seen[one] !== undefined);
  expect(of.length).toBeGreaterThan(EVENTS / 2);
  tell("event shown after a bare client had it (reach 50 ms at p99)", spread(of.map((one) => (seen[one] ?? 0) - (heard[one] ?? 0)), "ms"));
  tell("event shown after it happened, storing included", spread(of.map((one) => (seen[one] ?? 0) - (stored[one] ?? 0)), "ms"));
});

/** Reads the events of a session until its run has ended. */
async function listen(url: string, take: (event: any) => void): Promise<void> {
  const answer = await fetch(url);
  if (!answer.body) throw new Error("no stream");
  let rest = "";
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const frames = rest.split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) {
      const data = frame.split("\n").find((line) => line.startsWith("data: "));
      if (!data) continue;
      const event = JSON.parse(data.slice(6));
      take(event);
      if (event.type === "run_finished") return;
    }
  }
}
