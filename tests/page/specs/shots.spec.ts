// Pictures of every view, for people to look at: in `out/screenshots`, at three widths, light and dark.

import { test } from "../kit/test.ts";
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
