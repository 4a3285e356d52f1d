// A turn that was left off in the middle by a server that was killed.

import { at } from "../kit/at.ts";
import * as scenes from "../kit/scenes.ts";
import { expect, test } from "../kit/test.ts";

test.use({ plan: {} });

test("a turn that a dead server left is gone on with where a person says so, and only then", async ({ page: first, jar, browserOf, word }) => {
  // It was there before, so that it has nothing to resume when it starts.
  const beside = await jar.beside();
  const team = scenes.team(jar, word, { done: 1, held: 1 });
  const session = await jar.begin("keeper", team.ask);
  await first.goto(`/sessions/${session}`);
  await expect(at(first).head()).toContainText("1 of 2 done");
  await team.gate.waited();
  await jar.kill();
  const page = await browserOf(beside);
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText("interrupted");
  await expect(at(page).head()).toContainText("1 of 2 done");
  const resume = page.getByRole("button", { name: "Resume" });
  await expect(resume).toBeVisible();
  await expect(page.getByRole("button", { name: /^cancel/i })).toHaveCount(0);
  const asked = jar.model.sent.length;
  await resume.click();
  await team.gate.waited(2);
  await expect(resume).toHaveCount(0);
  team.gate.open();
  await expect(at(page).conversation()).toContainText(`All gauges of ${word} were looked at.`);
  await expect(at(page).head()).toContainText("2 of 2 done");
  // What was done is not done again.
  const again = jar.model.sent.slice(asked).map(({ task }) => task);
  expect(again).not.toContain(team.goals[0]);
  await beside.kill();
});
