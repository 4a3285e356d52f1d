// From the address to the first paint and to the view, with nothing in the browser's cache.

import * as scenes from "../kit/scenes.ts";
import { expect, test } from "../kit/test.ts";
import { spread, tell } from "./numbers.ts";

test.use({ plan: {} });

const TIMES = 15;

test("first paint", async ({ jar, browser, contextOptions }) => {
  const { session } = await jar.chat("teller", scenes.told(jar, "paint", "The tide is high."));
  for (const [name, path, shown] of [
    ["a new session", "/sessions/new", "main h1"],
    ["a conversation", `/sessions/${session}`, ".transcript .answer"],
  ] as const) {
    const paints: number[] = [];
    const views: number[] = [];
    for (let time = 0; time < TIMES; time += 1) {
      const context = await browser.newContext({ ...contextOptions, viewport: { width: 1400, height: 900 } });
      const page = await context.newPage();
      await page.addInitScript((selector) => {
        const look = () => {
          if (document.querySelector(selector)) performance.mark("view");
          else requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
      }, shown);
      await page.goto(jar.url + path);
      await expect(page.locator(shown).first()).toBeVisible();
      const times = await page.evaluate(() => ({
        paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN,
        view: performance.getEntriesByName("view")[0]?.startTime ?? Number.NaN,
      }));
      paints.push(times.paint);
      views.push(times.view);
      await context.close();
    }
    tell(`first paint of ${name}, cold cache (reach 300 ms)`, spread(paints, "ms"));
    tell(`${name} itself is there`, spread(views, "ms"));
  }
});
