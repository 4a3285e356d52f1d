// A tenant that has used up what it may use, of its storage and of its day.

import { at } from "../kit/at.ts";
import * as scenes from "../kit/scenes.ts";
import { expect, test } from "../kit/test.ts";

test.use({ plan: { server: "tenant_tokens_per_day = 200\ntenant_storage_mib = 1" } });

test("a storage that is full is said in a sentence, and there is room again where something is deleted", async ({ page, jar, word }) => {
  const ask = `Tell me all, ${word}.`;
  const nothing = { input: 0, output: 0 };
  jar.model.play(ask, { say: `${"The tide rises and falls. ".repeat(60_000)} That was all of ${word}.`, usage: nothing });
  const { session } = await jar.chat("teller", ask);
  await page.goto("/sessions/new");
  await page.getByRole("combobox", { name: "agent" }).selectOption("home/teller");
  const more = `And more, ${word}.`;
  jar.model.play(more, { say: `There is room again, ${word}.`, usage: nothing });
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
