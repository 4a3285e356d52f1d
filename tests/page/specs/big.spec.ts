// A session with 10,000 events: it is shown, scrolled and written in, and the page stays small.

import { at } from "../kit/at.ts";
import * as scenes from "../kit/scenes.ts";
import { expect, test } from "../kit/test.ts";

test.use({ plan: {} });

const EVENTS = 10_000;

test("10,000 events in one session are scrolled through and written under", async ({ page, jar, word }) => {
  test.setTimeout(240_000);
  const { session, events } = await scenes.long(jar);
  expect(events).toBeGreaterThanOrEqual(EVENTS);
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText("End of turn 9.");
  await at(page).calls().first().waitFor();
  expect(await page.locator("*").count()).toBeLessThan(6_000);
  const frames = await page.evaluate(async () => {
    const long: number[] = [];
    const scrollers = [...document.querySelectorAll("*")].filter((one) => one.scrollHeight > one.clientHeight + 200 && /auto|scroll/.test(getComputedStyle(one).overflowY));
    let last = performance.now();
    for (let frame = 0; frame < 120; frame += 1) {
      for (const one of scrollers) one.scrollTop = ((frame % 60) / 60) * one.scrollHeight;
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      long.push(now - last);
      last = now;
    }
    return { scrollers: scrollers.length, worst: Math.max(...long), over: long.filter((time) => time > 50).length, of: long.length };
  });
  console.log(`scrolled: ${frames.over} of ${frames.of} frames over 50 ms, the longest ${Math.round(frames.worst)} ms`);
  expect(frames.scrollers).toBeGreaterThan(0);
  expect(await page.locator("*").count()).toBeLessThan(6_000);
  await at(page).message().click();
  const before = Date.now();
  await page.keyboard.type("the quick tide rises over the old bridge");
  console.log(`typed: ${((Date.now() - before) / 40).toFixed(1)} ms a letter`);
  await expect(at(page).message()).toHaveValue("the quick tide rises over the old bridge");
  // The first turn is in reach.
  await expect(async () => {
    await page.mouse.move(700, 400);
    await page.mouse.wheel(0, -100_000);
    await expect(at(page).conversation()).toContainText("Turn 0 of the long session.", { timeout: 1_000 });
  }).toPass({ timeout: 60_000 });
  // It goes on.
  jar.model.play(`One more, ${word}.`, { say: `And more, ${word}.` });
  await at(page).say(`One more, ${word}.`);
  await expect(async () => {
    await page.mouse.wheel(0, 1_000_000);
    await expect(at(page).conversation()).toContainText(`And more, ${word}.`, { timeout: 1_000 });
  }).toPass({ timeout: 60_000 });
});

test("what the page keeps in memory does not grow with the events that pass", async ({ page, jar, word }) => {
  const cdp = await page.context().newCDPSession(page);
  const heap = async (): Promise<number> => {
    await cdp.send("HeapProfiler.collectGarbage");
    const { metrics } = await cdp.send("Performance.getMetrics");
    return metrics.find((one) => one.name === "Nodes")?.value ?? 0;
  };
  await cdp.send("Performance.enable");
  const { session } = await jar.chat("teller", `Begin, ${word}.`);
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText(`Noted: Begin, ${word}.`);
  const pass = async (turn: number): Promise<void> => {
    const ask = `Pass ${turn}, ${word}.`;
    jar.model.play(ask, { say: [...[...Array(1_000).keys()].map((one) => `${one} `), `passed ${turn}.`] });
    await jar.chat("teller", ask, session);
    await expect(at(page).conversation()).toContainText(`passed ${turn}.`);
  };
  await pass(0);
  await pass(1);
  const before = await heap();
  for (let turn = 2; turn < 8; turn += 1) await pass(turn);
  const after = await heap();
  console.log(`nodes in memory: ${before}, and ${after} after 6,000 more events`);
  expect(after).toBeLessThan(before + 3_000);
});
