// A tenant that has used up what it may use of a day.

import { at } from "../kit/at.ts";
import * as scenes from "../kit/scenes.ts";
import { expect, test } from "../kit/test.ts";

test.use({ plan: { server: "tenant_tokens_per_day = 200" } });

test("a day that is used up is said in a sentence, and what was said before can be read", async ({ page, jar, word }) => {
  const { session } = await jar.chat("teller", scenes.told(jar, word, `The last word of ${word}.`));
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText(`The last word of ${word}.`);
  await at(page).say(`One more, ${word}.`);
  await expect(page.getByRole("main")).toContainText(/used up/i);
  await expect(page.getByRole("main")).toContainText(/midnight/i);
  // What was typed is not lost.
  await expect(at(page).message()).toHaveValue(`One more, ${word}.`);
  await page.reload();
  await expect(at(page).conversation()).toContainText(`The last word of ${word}.`);
});
