// What a session changed: looked at by file, taken, thrown away, and taken back.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { at } from "../kit/at.ts";
import type { Jar } from "../kit/jar.ts";
import * as scenes from "../kit/scenes.ts";
import { expect, type Page, test } from "../kit/test.ts";

test.use({ plan: {} });

const BEFORE = "high water at 06:12\nlow water at 12:30\n";
const AFTER = "high water at 06:12\nlow water at 12:40\n";

async function review(page: Page, jar: Jar, word: string): Promise<string> {
  const { session } = await jar.chat("writer", await scenes.written(jar, word));
  await page.goto(`/sessions/${session}`);
  await at(page).review();
  return session;
}

const there = (jar: Jar, path: string) => readFile(join(jar.workspace, path), "utf8").catch(() => null);

test("changes are shown by file, what would run later first", async ({ page, jar, word }) => {
  await review(page, jar, word);
  const files = at(page).files();
  await expect(files).toHaveCount(3);
  await expect(files.nth(0)).toContainText(`lefthook-${word}.yml`);
  await expect(files.nth(0)).toContainText(/runs it at every commit/);
  await expect(page.getByRole("main")).toContainText("low water at 12:30");
  await expect(page.getByRole("main")).toContainText("low water at 12:40");
});

test("nothing is offered to be undone before something was applied, nor once it was undone", async ({ page, jar, word }) => {
  await review(page, jar, word);
  const undo = page.getByRole("button", { name: /^undo/i });
  await expect(at(page).files()).toHaveCount(3);
  await expect(undo).toHaveCount(0);
  await at(page).decide(`tides-${word}.md`, /^apply/i);
  await undo.click();
  await expect.poll(() => there(jar, `tides-${word}.md`)).toBe(BEFORE);
  await expect(undo).toHaveCount(0);
});

test("folders are not counted as files", async ({ page, jar, word }) => {
  const { session } = await jar.chat("writer", scenes.nested(jar, word));
  expect((await jar.get(`/v1/sessions/${session}/contents`)).changes).toBe(1);
  await page.goto(`/sessions/${session}/changes`);
  await expect(page.getByRole("main")).toContainText("1 file ·");
  await at(page).decideAll(/^apply/i);
  await expect(page.getByRole("main").getByText("1 file is in the workspace.")).toBeVisible();
  await page.getByRole("button", { name: /^undo/i }).click();
  await expect(page.getByRole("main").getByText("1 file is as it was before.")).toBeVisible();
});

test("a diff that cannot be read is said beside its file, and interrupts nobody", async ({ page, jar, word }) => {
  const { session } = await jar.chat("writer", await scenes.written(jar, word));
  const busy = { type: "https://belljar.dev/problems/busy", title: "busy", status: 409, detail: "it is being decided" };
  await page.route(/\/changes\?.*patch=true/, (route) => route.fulfill({ status: 409, contentType: "application/problem+json", json: busy }));
  await page.goto(`/sessions/${session}/changes`);
  await expect(at(page).files().getByRole("note")).toHaveCount(3);
  await expect(page.getByRole("main").getByRole("alert")).toHaveCount(0);
  await page.unrouteAll({ behavior: "ignoreErrors" });
  await at(page).files().nth(1).getByRole("button", { name: /again/i }).click();
  await expect(at(page).files().getByRole("note")).toHaveCount(2);
});

test("one file is taken, and the others stay where they are", async ({ page, jar, word }) => {
  await review(page, jar, word);
  await at(page).decide(`tides-${word}.md`, /^apply/i);
  await expect.poll(() => there(jar, `tides-${word}.md`)).toBe(AFTER);
  await expect(at(page).files()).toHaveCount(2);
  expect(await there(jar, `table-${word}.md`)).toBeNull();
  expect(await there(jar, `lefthook-${word}.yml`)).toBeNull();
});

test("what was taken is taken back", async ({ page, jar, word }) => {
  await review(page, jar, word);
  await at(page).decide(`tides-${word}.md`, /^apply/i);
  await expect.poll(() => there(jar, `tides-${word}.md`)).toBe(AFTER);
  await page.getByRole("button", { name: /^undo/i }).click();
  await expect.poll(() => there(jar, `tides-${word}.md`)).toBe(BEFORE);
  await expect(at(page).files()).toHaveCount(3);
});

test("one file is thrown away, and is in nobody's way then", async ({ page, jar, word }) => {
  const session = await review(page, jar, word);
  await at(page).decide(`table-${word}.md`, /^discard/i);
  await expect(at(page).files()).toHaveCount(2);
  const { places } = await jar.changes(session);
  expect(places[0].files.map((file: { path: string }) => file.path)).not.toContain(`table-${word}.md`);
  expect(await there(jar, `table-${word}.md`)).toBeNull();
});

test("what would run later is taken only when it is said to be meant", async ({ page, jar, word }) => {
  await review(page, jar, word);
  await at(page).decideAll(/^apply/i);
  await expect.poll(() => there(jar, `tides-${word}.md`)).toBe(AFTER);
  expect(await there(jar, `lefthook-${word}.yml`)).toBeNull();
  await expect(at(page).files()).toHaveCount(1);
  await at(page).decide(`lefthook-${word}.yml`, /^apply/i);
  await expect.poll(() => there(jar, `lefthook-${word}.yml`)).toContain(word);
});

test("a file that both changed is left, shown as both have it, and decided by the person", async ({ page, jar, word }) => {
  const session = await review(page, jar, word);
  await jar.file(`tides-${word}.md`, "high water at 06:12\nlow water at 13:00\n");
  await page.reload();
  const file = at(page).files().filter({ hasText: `tides-${word}.md` });
  await expect(file).toContainText(/conflict|both/i);
  await at(page).decide(`tides-${word}.md`, /^take the agent/i);
  await expect.poll(() => there(jar, `tides-${word}.md`)).toBe(AFTER);
  expect(session).toBeTruthy();
});

test("what the workspace has is kept where the person says so, and nothing waits any more", async ({ page, jar, word }) => {
  const session = await review(page, jar, word);
  const theirs = "high water at 06:12\nlow water at 13:00\n";
  await jar.file(`tides-${word}.md`, theirs);
  await page.reload();
  const file = at(page).files().filter({ hasText: `tides-${word}.md` });
  await expect(file).toContainText(/conflict|both/i);
  await at(page).decide(`tides-${word}.md`, /^keep the workspace/i);
  await expect(file).toHaveCount(0);
  await expect(at(page).files()).toHaveCount(2);
  expect(await there(jar, `tides-${word}.md`)).toBe(theirs);
  const { places } = await jar.changes(session);
  expect(places[0].files.map((one: { path: string }) => one.path)).not.toContain(`tides-${word}.md`);
});

test("of more changes than one list has, all are listed before all are decided about", async ({ page, jar, word }) => {
  const { session } = await jar.chat("writer", await scenes.written(jar, word));
  await jar.changes(session);
  // As if a list had two.
  await page.route("**/v1/sessions/*/changes*", async (route) => {
    const url = new URL(route.request().url());
    const skip = Number(url.searchParams.get("skip") ?? 0);
    const answer = await route.fetch();
    const body = await answer.json();
    if (skip === 0) for (const place of body.places) place.files = place.files.slice(0, 2);
    await route.fulfill({ response: answer, json: body });
  });
  await page.goto(`/sessions/${session}/changes`);
  const main = page.getByRole("main");
  await expect(main).toContainText("2 of 3 changes are listed.");
  await expect(at(page).files()).toHaveCount(2);
  for (const name of ["Apply all", "Discard all"]) await expect(main.getByRole("button", { name })).toBeDisabled();
  await main.getByRole("button", { name: "List the rest" }).click();
  await expect(at(page).files()).toHaveCount(3);
  await expect(main).not.toContainText("changes are listed.");
  await at(page).decideAll(/^apply/i);
  await expect.poll(() => there(jar, `tides-${word}.md`)).toBe(AFTER);
  // The list is asked for anew; the test does not wait for it.
  await page.unrouteAll({ behavior: "ignoreErrors" });
});

test("where there are others than were listed, nothing is decided about all of them", async ({ page, jar, word }) => {
  const session = await review(page, jar, word);
  await jar.post(`/v1/sessions/${session}/discard`, { paths: [`table-${word}.md`] });
  await at(page).decideAll(/^apply/i);
  await expect(page.getByRole("main").getByRole("alert")).toBeVisible();
  expect(await there(jar, `tides-${word}.md`)).toBe(BEFORE);
  // What is there now is shown.
  await expect(at(page).files()).toHaveCount(2);
});
