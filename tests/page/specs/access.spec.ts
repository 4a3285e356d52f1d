// For everybody: no barrier that axe knows of on any view, in both themes, narrow and wide; by keyboard alone.

import { at } from "../kit/at.ts";
import * as scenes from "../kit/scenes.ts";
import { accessibleInBoth, expect, fits, test } from "../kit/test.ts";
import { furnish, type Made, open, VIEWS } from "../kit/views.ts";

test.use({ plan: {} });

// Most of the time of all tests is here: each worker takes the next one, with a server of its own.
test.describe.configure({ mode: "parallel" });

let made: Made;

test.beforeAll(async ({ jar }) => {
  made = await furnish(jar, "harbour");
});

for (const view of VIEWS) {
  test(`no barrier on ${view.name}, light and dark, narrow and wide`, async ({ page }) => {
    for (const width of [360, 1400]) {
      await page.setViewportSize({ width, height: 900 });
      await open(page, view, made);
      await accessibleInBoth(page);
    }
  });
}

test("every view fits from 360 to 2,560 pixels", async ({ page }) => {
  for (const view of VIEWS) {
    await open(page, view, made);
    for (const width of [360, 480, 799, 800, 1199, 1200, 1920, 2560]) {
      await page.setViewportSize({ width, height: 900 });
      await test.step(`${view.name} at ${width}`, () => fits(page));
    }
  }
});

test("every view fits where the text is twice as large", async ({ page }) => {
  await page.setViewportSize({ width: 720, height: 900 });
  for (const view of VIEWS) {
    await open(page, view, made);
    await page.evaluate(() => document.documentElement.style.setProperty("font-size", "200%"));
    await test.step(view.name, () => fits(page));
  }
});

test("a whole turn with a question is done by keyboard alone", async ({ page, jar, word }) => {
  await page.goto("/sessions");
  await expect(page.getByRole("navigation").first()).toBeVisible();
  await page.keyboard.press("n");
  await expect(at(page).message()).toBeVisible();
  // The agent is chosen by its name, as in any list of a browser.
  await page.getByRole("combobox", { name: "agent" }).focus();
  await page.keyboard.type("asker");
  await page.keyboard.press("Tab");
  await at(page).message().focus();
  await page.keyboard.type(scenes.asking(jar, word));
  await page.keyboard.press("Enter");
  await expect(at(page).question()).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(at(page).question().getByRole("button", { name: /once/i })).toBeEnabled();
  await page.locator("body").press("a");
  await expect(at(page).conversation()).toContainText(`That was all of ${word}.`);
  const { places } = await jar.changes(at(page).session());
  expect(places[0].files.map((file: { path: string }) => file.path)).toEqual([`log-${word}-0.md`]);
});

test("the keys are listed, and the list says what they do", async ({ page }) => {
  await page.goto(`/sessions/${made.told}`);
  await expect(at(page).conversation()).toContainText("Tides at the bridge");
  await page.locator("body").press("?");
  const keys = page.getByRole("dialog");
  for (const key of ["/", "n", "j", "k", "g", "a", "x", "?"]) await expect(keys.getByText(key, { exact: true }).first()).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(keys).toHaveCount(0);
  await page.locator("body").press("/");
  await expect(page.getByRole("searchbox").first()).toBeFocused();
});

test("focus is always on something that is seen", async ({ page }) => {
  await page.goto(`/sessions/${made.team}`);
  await expect(at(page).head()).toBeVisible();
  const seen = new Set<string>();
  for (let step = 0; step < 60; step += 1) {
    await page.keyboard.press("Tab");
    const focus = await page.evaluate(() => {
      const one = document.activeElement;
      if (!one || one === document.body) return null;
      const box = one.getBoundingClientRect();
      const style = getComputedStyle(one);
      const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
      const inside = box.bottom > 0 && box.right > 0 && box.top < window.innerHeight && box.left < window.innerWidth;
      return { name: `${one.tagName} ${one.getAttribute("aria-label") ?? one.textContent?.slice(0, 40)}`, ring: ring || style.boxShadow !== "none", inside };
    });
    if (!focus) continue;
    expect(focus).toMatchObject({ ring: true, inside: true });
    seen.add(focus.name);
  }
  expect(seen.size).toBeGreaterThan(8);
});

test("the focus stays where it is while rows arrive", async ({ page, jar, word }) => {
  const team = scenes.team(jar, word, { held: 3 });
  const session = await jar.begin("keeper", team.ask);
  await page.goto(`/sessions/${session}`);
  await team.gate.waited(3);
  await expect(at(page).rows()).toHaveCount(3);
  await at(page).message().focus();
  await page.keyboard.type("half a sent");
  team.gate.open();
  await expect(at(page).conversation()).toContainText(`All gauges of ${word} were looked at.`);
  await expect(at(page).message()).toBeFocused();
  await expect(at(page).message()).toHaveValue("half a sent");
});

test("what happens is read aloud in words", async ({ page, jar, word }) => {
  await page.addInitScript(() => {
    const spoken: string[] = ((window as unknown as { spoken: string[] }).spoken = []);
    new MutationObserver(() => {
      for (const one of document.querySelectorAll('[role="status"], [role="alert"]')) {
        const text = one.textContent?.trim();
        if (text && !spoken.includes(text)) spoken.push(text);
      }
    }).observe(document, { subtree: true, childList: true, characterData: true });
  });
  const session = await jar.begin("asker", scenes.asking(jar, word));
  await page.goto(`/sessions/${session}`);
  const spoken = () => page.evaluate(() => (window as unknown as { spoken: string[] }).spoken.join("\n"));
  await expect.poll(spoken).toMatch(/question|waits|asks/i);
  await at(page).question().getByRole("button", { name: /^no/i }).click();
  await expect.poll(spoken).toMatch(/completed|answered|done/i);
});

test("who prefers no motion sees none", async ({ page, jar, word }) => {
  await page.emulateMedia({ reducedMotion: "reduce" });
  const team = scenes.team(jar, word, { held: 2 });
  const session = await jar.begin("keeper", team.ask);
  await page.goto(`/sessions/${session}`);
  await team.gate.waited(2);
  await expect(at(page).rows()).toHaveCount(2);
  const moving = await page.evaluate(() =>
    document.getAnimations().filter((one) => one.playState === "running" && Number(one.effect?.getComputedTiming().duration) > 1).length,
  );
  expect(moving).toBe(0);
  team.gate.open();
  await jar.idle(session);
});
