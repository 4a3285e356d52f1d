// A tenant that has stored as much as it may.

import { at } from "../kit/at.ts";
import { expect, test } from "../kit/test.ts";

test.use({ plan: { server: "tenant_storage_mib = 1" } });

test("a storage that is full is said in a sentence, and there is room again where something is deleted", async ({ page, jar, word }) => {
  const ask = `Tell me all, ${word}.`;
  jar.model.play(ask, { say: `${"The tide rises and falls. ".repeat(60_000)} That was all of ${word}.` });
  const { session } = await jar.chat("teller", ask);
  await page.goto("/sessions/new");
  await page.getByRole("combobox", { name: "agent" }).selectOption("home/teller");
  const more = `And more, ${word}.`;
  jar.model.play(more, { say: `There is room again, ${word}.` });
  await at(page).say(more);
  await expect(page.getByRole("main")).toContainText(/as much is stored as may be|full/i);
  await expect(page.getByRole("main")).toContainText(/delete sessions/i);
  // What was typed is not lost, and what is stored can be read.
  await expect(at(page).message()).toHaveValue(more);
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText("The tide rises and falls.");
  await page.getByRole("button", { name: /delete/i }).click();
  await page.getByRole("dialog").getByRole("button", { name: /^delete/i }).click();
  await expect(page).not.toHaveURL(new RegExp(session));
  await page.goto("/sessions/new");
  await expect(at(page).message()).toHaveValue(more);
  await at(page).message().press("Enter");
  await expect(at(page).conversation()).toContainText(`There is room again, ${word}.`);
});
