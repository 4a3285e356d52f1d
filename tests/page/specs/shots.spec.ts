// Pictures of every view, for people to look at: in `out/screenshots`, at three widths, light and dark. Those
// in `out/guide` are what README and guide show; they are copied to `host/docs/images` by hand.

import { at } from "../kit/at.ts";
import { expect, test } from "../kit/test.ts";
import { furnish, type Made, open, VIEWS } from "../kit/views.ts";

test.use({ plan: {} });

let made: Made;

test.beforeAll(async ({ jar }) => {
  made = await furnish(jar, "harbour");
});

for (const view of VIEWS) {
  test(`a picture of ${view.name}`, async ({ page }) => {
    for (const width of [360, 900, 1400]) {
      await page.setViewportSize({ width, height: 900 });
      await open(page, view, made);
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        await page.screenshot({ path: `out/screenshots/${view.name.replace(" ", "-")}-${width}-${colorScheme}.png` });
      }
    }
  });
}

test("pictures for the guide", async ({ page, jar }) => {
  await jar.post(`/v1/sessions/${made.asked}/questions/1`, { answer: "no" });
  await jar.idle(made.asked);
  await page.setViewportSize({ width: 1280, height: 760 });
  await page.emulateMedia({ reducedMotion: "reduce" });
  const take = (name: string) => page.screenshot({ path: `out/guide/${name}.png` });
  await page.goto(`/sessions/${made.team}`);
  await expect(at(page).waiting()).toHaveCount(0);
  await expect(at(page).head()).toContainText("3 of 3 done");
  await expect(at(page).glass()).toContainText("scout#2");
  await take("page-subagents");
  await page.goto(`/sessions/${made.refused}`);
  await at(page).refusals().first().getByRole("link", { name: /why/i }).click();
  await expect(at(page).glass()).toContainText("decided");
  await take("page-refused");
  await jar.changes(made.written);
  await page.goto(`/sessions/${made.written}/changes`);
  await expect(page.getByRole("main")).toContainText("low water at 12:40");
  await take("page-changes");
  await page.goto("/agents/home/scout");
  await expect(at(page).source()).toContainText("You find files.");
  await take("page-agent");
});
