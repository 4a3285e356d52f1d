// Questions of agents: shown where the work is and on top of every page, answered once, and gone then.

import { stat } from "node:fs/promises";
import { join } from "node:path";
import { at } from "../kit/at.ts";
import type { Jar } from "../kit/jar.ts";
import * as scenes from "../kit/scenes.ts";
import { expect, test } from "../kit/test.ts";

test.use({ plan: {} });

/** The names of the files that a session has changed. */
async function changed(jar: Jar, session: string): Promise<string[]> {
  await jar.idle(session);
  const { places } = await jar.changes(session);
  return places.flatMap((place: { files: { path: string }[] }) => place.files.map((file) => file.path));
}

test("a call that needs a word is shown with all that it would do", async ({ page, jar, word }) => {
  const session = await jar.begin("asker", scenes.asking(jar, word));
  await page.goto(`/sessions/${session}`);
  const question = at(page).question();
  await expect(question).toContainText("file_write");
  await expect(question).toContainText(`log-${word}-0.md`);
  await expect(question).toContainText(`entry 0 of ${word}`);
  await expect(question).toContainText(/It may touch files \/workspace \((overlay|read-write)\)/);
  await question.getByRole("button", { name: /^no/i }).click();
});

test("`no` lets nothing happen, and the turn goes on", async ({ page, jar, word }) => {
  const session = await jar.begin("asker", scenes.asking(jar, word));
  await page.goto(`/sessions/${session}`);
  await at(page).question().getByRole("button", { name: /^no/i }).click();
  await expect(at(page).conversation()).toContainText(`That was all of ${word}.`);
  await expect(at(page).question()).toHaveCount(0);
  expect(await changed(jar, session)).toEqual([]);
});

test("`allow once` is for one call, and the next one is asked for again", async ({ page, jar, word }) => {
  const session = await jar.begin("asker", scenes.asking(jar, word, 2));
  await page.goto(`/sessions/${session}`);
  await at(page).question(`log-${word}-0.md`).getByRole("button", { name: /once/i }).click();
  await at(page).question(`log-${word}-1.md`).getByRole("button", { name: /^no/i }).click();
  await expect(at(page).conversation()).toContainText(`That was all of ${word}.`);
  expect(await changed(jar, session)).toEqual([`log-${word}-0.md`]);
});

test("`allow for this turn` is not asked again in it, and is again in the next", async ({ page, jar, word }) => {
  const session = await jar.begin("asker", scenes.asking(jar, word, 3));
  await page.goto(`/sessions/${session}`);
  await at(page).question().getByRole("button", { name: /this turn/i }).click();
  await expect(at(page).conversation()).toContainText(`That was all of ${word}.`);
  expect(await changed(jar, session)).toHaveLength(3);
  const again = scenes.asking(jar, `${word}b`);
  await at(page).say(again);
  await at(page).question(`log-${word}b-0.md`).getByRole("button", { name: /^no/i }).click();
  await expect(at(page).conversation()).toContainText(`That was all of ${word}b.`);
  expect(await changed(jar, session)).toHaveLength(3);
});

test("an answer to a question in words is one of its options", async ({ page, jar, word }) => {
  const session = await jar.begin("keeper", scenes.wondering(jar, word, ["old-bridge", "north-pier"]));
  await page.goto(`/sessions/${session}`);
  const question = at(page).question(`Which gauge of ${word}?`);
  await question.getByRole("button", { name: "north-pier" }).click();
  await expect(at(page).conversation()).toContainText(`Thank you, ${word}.`);
  await expect(question).toHaveCount(0);
  expect(told(jar, word)).toContain("north-pier");
  expect(told(jar, word)).not.toContain("old-bridge");
});

test("an answer to a question in words is the person's own", async ({ page, jar, word }) => {
  const session = await jar.begin("keeper", scenes.wondering(jar, word));
  await page.goto(`/sessions/${session}`);
  const question = at(page).question(`Which gauge of ${word}?`);
  await question.getByRole("textbox").fill(`the one at ${word} weir`);
  await expect(question.getByRole("button", { name: "Answer" })).toBeEnabled();
  await question.getByRole("textbox").press("Enter");
  await expect(at(page).conversation()).toContainText(`Thank you, ${word}.`);
  expect(told(jar, word)).toContain(`the one at ${word} weir`);
});

test("a question stands on top of every page, and leads to where the work is", async ({ page, jar, word }) => {
  const session = await jar.begin("asker", scenes.asking(jar, word));
  for (const path of ["/agents", "/usage", "/rights"]) {
    await page.goto(path);
    await expect(at(page).waiting()).toBeVisible();
  }
  // Where a question of another test waits too, both are folded.
  const [link, show] = [
    at(page).questionElsewhere(`log-${word}-0.md`).getByRole("link", { name: "Open" }),
    page.getByRole("button", { name: /^show questions/i }),
  ];
  await expect(link.or(show)).toBeVisible();
  if (await show.isVisible()) await show.click();
  await link.click();
  await expect(page).toHaveURL(new RegExp(session));
  await at(page).question(`log-${word}-0.md`).getByRole("button", { name: /^no/i }).click();
  await expect(at(page).conversation()).toContainText(`That was all of ${word}.`);
});

test("a key answers nothing that nobody has seen", async ({ page, jar, word }) => {
  const sessions = [await jar.begin("asker", scenes.asking(jar, word)), await jar.begin("asker", scenes.asking(jar, `${word}b`))];
  await page.goto("/agents");
  await expect(at(page).waiting()).toHaveText(/^2 /);
  for (const key of ["a", "A", "a", "a"]) await page.locator("body").press(key);
  await page.getByRole("button", { name: /questions that wait for you/i }).click();
  await expect(at(page).questionElsewhere(`log-${word}-0.md`)).toBeVisible();
  for (const key of ["a", "A", "a", "a"]) await page.locator("body").press(key);
  // In the session that asks it is seen, and there a key that is held answers one alone.
  await page.goto(`/sessions/${sessions[0]}`);
  await expect(at(page).question().getByRole("button", { name: /^no/i })).toBeEnabled();
  await page.locator("body").press("x");
  await expect(at(page).conversation()).toContainText(`That was all of ${word}.`);
  await page.goto(`/sessions/${sessions[1]}`);
  await at(page).question(`log-${word}b-0.md`).getByRole("button", { name: /^no/i }).click();
  await expect(at(page).conversation()).toContainText(`That was all of ${word}b.`);
  for (const session of sessions) expect(await changed(jar, session)).toEqual([]);
});

test("an option that an agent offers is taken by no key", async ({ page, jar, word }) => {
  const session = await jar.begin("keeper", scenes.wondering(jar, word, ["delete them", "keep them"]));
  await page.goto(`/sessions/${session}`);
  await expect(at(page).question().getByRole("button", { name: "keep them" })).toBeEnabled();
  await page.locator("body").press("a");
  await at(page).question().getByRole("button", { name: "keep them" }).click();
  await expect(at(page).conversation()).toContainText(`Thank you, ${word}.`);
  expect(told(jar, word)).toContain("keep them");
});

test("a question that was answered elsewhere is gone everywhere", async ({ page, tab, jar, word }) => {
  const session = await jar.begin("asker", scenes.asking(jar, word));
  const other = await tab();
  const third = await tab();
  await page.goto(`/sessions/${session}`);
  await other.goto(`/sessions/${session}`);
  await third.goto("/usage");
  await expect(at(other).question()).toBeVisible();
  await expect(at(third).questionElsewhere(`log-${word}-0.md`)).toBeVisible();
  await at(page).question().getByRole("button", { name: /^no/i }).click();
  await expect(at(other).question()).toHaveCount(0);
  await expect(at(third).questionElsewhere(`log-${word}-0.md`)).toHaveCount(0);
  await expect(at(other).conversation()).toContainText(`That was all of ${word}.`);
});

test("a question outlives a reload, and its answer works after it", async ({ page, jar, word }) => {
  const session = await jar.begin("asker", scenes.asking(jar, word));
  await page.goto(`/sessions/${session}`);
  await expect(at(page).question()).toBeVisible();
  await page.reload();
  await at(page).question(`log-${word}-0.md`).getByRole("button", { name: /once/i }).click();
  await expect(at(page).conversation()).toContainText(`That was all of ${word}.`);
  expect(await changed(jar, session)).toEqual([`log-${word}-0.md`]);
  await expect(stat(join(jar.workspace, `log-${word}-0.md`))).rejects.toThrow();
});

/** What the model was sent last about a word. */
function told(jar: Jar, word: string): string {
  const last = jar.model.sent.filter((one) => one.task.includes(word)).at(-1);
  return JSON.stringify(last?.request.messages.filter((message) => message.role === "tool"));
}
