// A session with 10,000 events: its frames while it is scrolled and written in, and what it keeps in memory
// as more events pass.

import { at } from "../kit/at.ts";
import { long } from "../kit/scenes.ts";
import { expect, type Page, test } from "../kit/test.ts";
import { mib, spread, tell } from "./numbers.ts";

test.use({ plan: {} });

/** Counts frames and long tasks while something is done. */
async function watched(page: Page, what: string, work: () => Promise<void>): Promise<void> {
  await page.evaluate(() => {
    const kept = { frames: [] as number[], tasks: [] as number[], on: true };
    (window as unknown as { kept: typeof kept }).kept = kept;
    new PerformanceObserver((list) => kept.on && kept.tasks.push(...list.getEntries().map((one) => one.duration))).observe({ type: "longtask" });
    let last = performance.now();
    const frame = (now: number) => {
      kept.frames.push(now - last);
      last = now;
      if (kept.on) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  await work();
  const { frames, tasks } = await page.evaluate(() => {
    const { kept } = window as unknown as { kept: { frames: number[]; tasks: number[]; on: boolean } };
    kept.on = false;
    return kept;
  });
  const over = frames.filter((time) => time > 50).length;
  tell(`10,000 events, ${what} (reach no frame over 50 ms)`, `${over} of ${frames.length} frames over 50 ms`, spread(frames.slice(1), "ms"), `${tasks.length} tasks over 50 ms${tasks.length > 0 ? `, the longest ${Math.round(Math.max(...tasks))} ms` : ""}`);
}

test("frames of a session with 10,000 events", async ({ page, jar }) => {
  const { session, events } = await long(jar);
  const before = Date.now();
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText("End of turn 9.");
  await at(page).calls().first().waitFor();
  tell(`${events} events are there after`, `${Date.now() - before} ms`);
  await page.waitForTimeout(1_500);
  await page.mouse.move(600, 450);
  await watched(page, "scrolled", async () => {
    for (let turn = 0; turn < 150; turn += 1) {
      await page.mouse.wheel(0, turn < 75 ? -700 : 700);
      await page.evaluate(() => new Promise(requestAnimationFrame));
    }
  });
  await watched(page, "scrolled from end to end", async () => {
    for (let turn = 0; turn < 20; turn += 1) {
      await page.mouse.wheel(0, turn % 2 === 0 ? -1_000_000 : 1_000_000);
      for (let frame = 0; frame < 5; frame += 1) await page.evaluate(() => new Promise(requestAnimationFrame));
    }
  });
  await at(page).message().click();
  await watched(page, "written in", async () => {
    await page.keyboard.type("the quick tide rises over the old bridge and falls again ".repeat(3));
  });
  // And while more comes.
  const ask = "One more of the long session.";
  jar.model.play(ask, { say: [...Array(600).keys()].map((one) => `word ${one} `) });
  const turn = jar.chat("keeper", ask, session);
  await watched(page, "written in while words come", async () => {
    await page.keyboard.type("and while it speaks the person goes on typing ".repeat(3));
    await turn;
    await expect(at(page).conversation()).toContainText("word 599");
  });
});

test("memory while events pass", async ({ page, jar, word }) => {
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable");
  const look = async () => {
    await cdp.send("HeapProfiler.collectGarbage");
    const { metrics } = await cdp.send("Performance.getMetrics");
    const of = (name: string) => metrics.find((one) => one.name === name)?.value ?? Number.NaN;
    return { heap: of("JSHeapUsedSize"), nodes: of("Nodes") };
  };
  const { session } = await jar.chat("keeper", `Begin, ${word}.`);
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText(`Noted: Begin, ${word}.`);
  const count = async () => {
    const { text } = await jar.api("GET", `/v1/sessions/${session}/events?follow=false&after=0`);
    return text.trim().split("\n\n").length;
  };
  const steps: string[] = [];
  const heaps: { heap: number; events: number }[] = [];
  for (let turn = 0; turn < 12; turn += 1) {
    const ask = `Pass ${turn}, ${word}.`;
    const calls = [...Array(20).keys()].map(() => ({ name: "file_read", arguments: { path: "notes.md" } }));
    const parts = [...Array(5).keys()].map((step) => ({ say: [...Array(400).keys()].map((one) => `${step}.${one} `), calls }));
    jar.model.play(ask, ...parts, { say: `passed ${turn}.` });
    await jar.chat("keeper", ask, session);
    await expect(at(page).conversation()).toContainText(`passed ${turn}.`);
    if (turn % 3 !== 2) continue;
    const { heap, nodes } = await look();
    const events = await count();
    heaps.push({ heap, events });
    steps.push(`${events} events ${mib(heap)} ${nodes} nodes`);
  }
  const [first, last] = [heaps[0], heaps.at(-1)];
  if (!first || !last) throw new Error("nothing was measured");
  tell("memory while events pass (reach flat)", ...steps, `${Math.round((last.heap - first.heap) / (last.events - first.events))} bytes an event`);
});
