// The glass: what a run did, what it was refused and by whom, and its receipts.

import { readFile } from "node:fs/promises";
import { at } from "../kit/at.ts";
import * as scenes from "../kit/scenes.ts";
import { expect, test } from "../kit/test.ts";

test.use({ plan: {} });

test("each call is a row with its time, fuel and bytes", async ({ page, jar, word }) => {
  const { session } = await jar.chat("scout", scenes.refused(jar, word));
  await page.goto(`/sessions/${session}`);
  const calls = at(page).calls();
  await expect(calls).toHaveCount(3);
  await expect(calls.nth(0)).toContainText("file_read");
  await expect(calls.nth(2)).toContainText("file_search");
  await calls.nth(0).click();
  const { receipts } = await jar.get(`/v1/sessions/${session}/receipts`);
  const receipt = receipts[0].body.receipt;
  await expect(at(page).glass()).toContainText("/workspace/notes.md");
  await expect(at(page).glass()).toContainText(/fuel/i);
  await expect(at(page).glass()).toContainText(/memory/i);
  await expect(at(page).glass().locator(`[value="${receipt.fuel}"], [title*="${receipt.fuel}"]`).first()).toBeAttached();
});

test("a refusal stands out, in words, and says who decided", async ({ page, jar, word }) => {
  const { session } = await jar.chat("scout", scenes.refused(jar, word));
  await page.goto(`/sessions/${session}`);
  const refusal = at(page).refusals().first();
  await expect(refusal).toContainText(/refused/i);
  await expect(refusal).toContainText("etc/passwd");
  await expect(refusal).toContainText(/leads above/);
  await expect(at(page).glass()).toContainText(/refused/i);
});

test("a tool that an agent does not have is explained by its four sources", async ({ page, jar, word }) => {
  const ask = `Fetch it, ${word}.`;
  jar.model.play(ask, { calls: [{ name: "file_write", arguments: { path: "x.md", content: word } }] }, { say: `Refused, ${word}.` });
  const { session } = await jar.chat("scout", ask);
  await page.goto(`/sessions/${session}`);
  await at(page).refusals().first().getByRole("link", { name: /why/i }).click();
  const votes = at(page).glass().getByRole("listitem").filter({ hasText: /allows|refuses|says nothing/ });
  await expect(votes.first()).toBeVisible();
  expect(await votes.count()).toBeGreaterThanOrEqual(4);
  await expect(votes.filter({ hasText: "decided" })).toHaveCount(1);
  await expect(votes.filter({ hasText: "decided" })).toContainText("definition");
});

test("receipts are there as JSON and as CSV", async ({ page, jar, word }) => {
  const { session } = await jar.chat("scout", scenes.refused(jar, word));
  await page.goto(`/sessions/${session}`);
  const stored = await jar.get(`/v1/sessions/${session}/receipts`);
  await at(page).calls().first().waitFor();
  const take = async (name: RegExp): Promise<string> => {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      at(page).glass().getByRole("link", { name }).or(at(page).glass().getByRole("button", { name })).first().click(),
    ]);
    return readFile(await download.path(), "utf8");
  };
  expect(JSON.parse(await take(/json/i)).map((one: { id: string }) => one.id)).toEqual(stored.receipts.map((one: { id: string }) => one.id));
  const lines = (await take(/csv/i)).trim().split("\n");
  // Names of several files stand in one cell, a line each.
  expect(lines.filter((line) => /^\d{13},/.test(line))).toHaveLength(stored.receipts.length);
  expect(lines[0]).toMatch(/tool/);
  expect(lines[1]).toContain("file_read");
});

test("the calls of subagents stand below them", async ({ page, jar, word }) => {
  const team = scenes.team(jar, word, { done: 2 });
  const { session } = await jar.chat("keeper", team.ask);
  await page.goto(`/sessions/${session}`);
  await expect(at(page).glass().getByText("file_read")).toHaveCount(2);
  await expect(at(page).glass()).toContainText("scout#1");
});

test("the steps of subagents count in the steps of the turn", async ({ page, jar, word }) => {
  const team = scenes.team(jar, word, { done: 2 });
  const { session, message } = await jar.chat("keeper", team.ask);
  const { messages } = await jar.get(`/v1/sessions/${session}/messages`);
  const { total } = messages.find((one: { id: string }) => one.id === message).metadata;
  expect(total.steps).toBeGreaterThan(2);
  await page.goto(`/sessions/${session}`);
  await expect(at(page).glass()).toContainText(new RegExp(`steps\\s*${total.steps} / \\d+`));
});

test("the time in which a person was waited for is told from the work", async ({ page, jar, word }) => {
  const session = await jar.begin("asker", scenes.asking(jar, word));
  await page.goto(`/sessions/${session}`);
  const call = at(page).calls().first();
  await expect(call).toContainText(/waited .* for you/);
  await expect(call.locator(".is-wait")).toHaveCount(1);
  await at(page).question().getByRole("button", { name: /once|yes|allow/i }).first().click();
  await jar.idle(session);
  await expect(call).toContainText(/waited .* for you/);
});

test("two runs are compared side by side", async ({ page, jar, word }) => {
  const first = await jar.chat("scout", scenes.refused(jar, word));
  const second = await jar.chat("scout", scenes.refused(jar, `${word}b`));
  await page.goto(`/sessions/${first.session}`);
  await at(page).compareWith(second.session);
  const both = page.getByRole("main");
  await expect(both).toContainText(word);
  await expect(both).toContainText(`${word}b`);
  await expect(both).toContainText("file_search");
});

test("a comparison whose address was cut shows the last turns of both", async ({ page, jar, word }) => {
  const first = await jar.chat("scout", scenes.refused(jar, word));
  const second = await jar.chat("scout", scenes.refused(jar, `${word}b`));
  await page.goto(`/sessions/compare?a=${first.session}&b=${second.session}`);
  await expect(page.getByRole("main")).toContainText("file_search");
  await expect(page).toHaveURL(new RegExp(`at=${first.message}`));
  await expect(page).toHaveURL(new RegExp(`bt=${second.message}`));
});

test("why a tool was refused that nobody has is said in a sentence", async ({ page, jar, word }) => {
  const ask = `Make one up, ${word}.`;
  jar.model.play(ask, { calls: [{ name: "tide_table", arguments: { place: word } }] }, { say: `There is none, ${word}.` });
  const { session } = await jar.chat("scout", ask);
  await page.goto(`/sessions/${session}`);
  await at(page).refusals().first().getByRole("link", { name: /why/i }).click();
  await expect(at(page).glass()).toContainText("a tool that nobody has");
  await expect(at(page).glass()).not.toContainText("another tab");
});

test("the glass folds away and comes back by its key", async ({ page, jar, word }) => {
  const { session } = await jar.chat("scout", scenes.refused(jar, word));
  await page.goto(`/sessions/${session}`);
  await expect(at(page).glass()).toBeVisible();
  await page.getByRole("heading").first().focus().catch(() => undefined);
  await page.locator("body").press("g");
  await expect(at(page).glass()).toBeHidden();
  await page.locator("body").press("g");
  await expect(at(page).glass()).toBeVisible();
});

test("the calls of a program stand below its own, refused ones too", async ({ page, jar, word }) => {
  const { session } = await jar.chat("scribe", scenes.programmed(jar, word));
  const { receipts } = await jar.get(`/v1/sessions/${session}/receipts`);
  expect(receipts.map((one: { tool: string }) => one.tool).sort()).toEqual(["file_read", "file_read", "file_read", "run_javascript"]);
  await page.goto(`/sessions/${session}`);
  await expect(at(page).calls()).toHaveCount(4);
  await expect(at(page).calls().nth(0)).toContainText("run_javascript");
  for (const index of [1, 2, 3]) await expect(at(page).calls().nth(index)).toContainText("file_read");
  // In the conversation there is what the model has called.
  await expect(at(page).conversation()).toContainText("run_javascript");
  await expect(at(page).conversation().getByText("old-bridge.md")).toHaveCount(0);
  await at(page).calls().nth(0).click();
  const detail = at(page).glass();
  await expect(detail).toContainText("Calls that it made");
  await expect(detail).toContainText("old-bridge.md");
  await expect(detail).toContainText(/refused/i);
});
