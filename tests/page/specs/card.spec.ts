// The card of subagents: live, reloaded, in a second tab, for who comes late, and after the server was killed.

import type { Page } from "@playwright/test";
import { at } from "../kit/at.ts";
import * as scenes from "../kit/scenes.ts";
import { expect, test } from "../kit/test.ts";

test.use({ plan: {} });

/** A card as data and as text, without what the clock decides. */
async function card(page: Page): Promise<{ head: string; rows: string[][]; text: string }> {
  const rows = await at(page).rows().evaluateAll((all) =>
    all.map((row) => [row.getAttribute("data-child") ?? "", row.getAttribute("data-status") ?? "", row.textContent ?? ""]),
  );
  const still = (text: string) => text.replace(/\b\d+(\.\d+)?\s?(ms|s|min)\b/g, "TIME").replace(/\b\d{1,2}:\d{2}(:\d{2})?\b/g, "TIME");
  const head = (await at(page).head().textContent()) ?? "";
  const text = (await at(page).card().innerText()) ?? "";
  return { head: still(head), rows: rows.map((row) => row.map(still)), text: still(text) };
}

test("a row follows its subagent from queued to its end, and the head counts them", async ({ page, jar, word }) => {
  const team = scenes.team(jar, word, { done: 1, held: 4, failed: 1 });
  const session = await jar.begin("keeper", team.ask);
  await page.goto(`/sessions/${session}`);
  await expect(at(page).head()).toContainText("2 of 6 done");
  await at(page).unfold();
  await expect(at(page).rows()).toHaveCount(6);
  const statuses = () => at(page).rows().evaluateAll((all) => all.map((row) => row.getAttribute("data-status")));
  await expect.poll(statuses).toEqual(["failed", "completed", "running", "running", "running", "queued"]);
  team.gate.open();
  await expect(at(page).head()).toContainText("6 of 6 done");
  await at(page).unfold();
  await expect.poll(statuses).toEqual(["failed", "completed", "completed", "completed", "completed", "completed"]);
  await expect(at(page).conversation()).toContainText(`All gauges of ${word} were looked at.`);
});

test("a row says who, what for, what it cost, and why it failed", async ({ page, jar, word }) => {
  const team = scenes.team(jar, word, { done: 1, failed: 1 });
  const { session } = await jar.chat("keeper", team.ask);
  await page.goto(`/sessions/${session}`);
  const [failed, done] = [at(page).rows().nth(0), at(page).rows().nth(1)];
  await expect(done).toContainText("scout");
  await expect(done).toContainText(`Look at gauge 1 of ${word}.`);
  await expect(done).toContainText("completed");
  await expect(done).toContainText(/2 steps/);
  await expect(done).toContainText(/300 tok/);
  await expect(done).toContainText(/fuel/);
  await expect(failed).toContainText("failed");
  await expect(failed).toContainText("the tide is out");
});

test("a card is the same live, reloaded, in a second tab and for who comes late", async ({ page, tab, jar, word }) => {
  const team = scenes.team(jar, word, { done: 2, failed: 1 });
  await page.goto("/sessions/new");
  await at(page).begin("keeper", team.ask);
  await expect(at(page).conversation()).toContainText(`All gauges of ${word} were looked at.`);
  await expect(at(page).head()).toContainText("3 of 3 done");
  const live = await card(page);
  expect(live.rows).toHaveLength(3);
  const second = await tab();
  await second.goto(page.url());
  await expect(at(second).head()).toContainText("3 of 3 done");
  await expect.poll(() => card(second)).toEqual(live);
  await page.reload();
  await expect(at(page).head()).toContainText("3 of 3 done");
  await expect.poll(() => card(page)).toEqual(live);
  await page.goto("/usage");
  await page.goBack();
  await expect(at(page).head()).toContainText("3 of 3 done");
  await expect.poll(() => card(page)).toEqual(live);
});

test("a card that is live is the same reloaded and in a second tab, while it runs", async ({ page, tab, jar, word }) => {
  const team = scenes.team(jar, word, { done: 1, held: 2 });
  const session = await jar.begin("keeper", team.ask);
  await page.goto(`/sessions/${session}`);
  await team.gate.waited(2);
  await expect(at(page).head()).toContainText("1 of 3 done");
  await expect(at(page).rows()).toHaveCount(3);
  const live = (await card(page)).rows.map((row) => row.slice(0, 2));
  const second = await tab();
  await second.goto(page.url());
  await expect(at(second).head()).toContainText("1 of 3 done");
  expect((await card(second)).rows.map((row) => row.slice(0, 2))).toEqual(live);
  await page.reload();
  await expect(at(page).head()).toContainText("1 of 3 done");
  expect((await card(page)).rows.map((row) => row.slice(0, 2))).toEqual(live);
  team.gate.open();
  for (const one of [page, second]) await expect(at(one).head()).toContainText("3 of 3 done");
  await expect.poll(async () => (await card(second)).text).toBe((await card(page)).text);
});

test("one subagent is cancelled, and the others go on", async ({ page, jar, word }) => {
  const team = scenes.team(jar, word, { held: 2 });
  const session = await jar.begin("keeper", team.ask);
  await page.goto(`/sessions/${session}`);
  await team.gate.waited(2);
  await at(page).rows().nth(1).getByRole("button", { name: /cancel/i }).click();
  await expect(at(page).rows().nth(1)).toHaveAttribute("data-status", "cancelled");
  await expect(at(page).rows().nth(0)).toHaveAttribute("data-status", "running");
  await expect(at(page).rows().nth(1)).toContainText("Cancelled by the person at this machine");
  team.gate.open();
  await expect(at(page).rows().nth(0)).toHaveAttribute("data-status", "completed");
  await expect(at(page).conversation()).toContainText(`All gauges of ${word} were looked at.`);
});

test("all subagents are cancelled with one button", async ({ page, jar, word }) => {
  const team = scenes.team(jar, word, { held: 3 });
  const session = await jar.begin("keeper", team.ask);
  await page.goto(`/sessions/${session}`);
  await team.gate.waited(3);
  await at(page).card().getByRole("button", { name: "cancel all" }).click();
  await expect(at(page).head()).toContainText("3 of 3 done");
  for (const row of await at(page).rows().all()) await expect(row).toHaveAttribute("data-status", "cancelled");
  await jar.idle(session);
});

test("a row opens what its subagent was told, did and found, to be read", async ({ page, jar, word }) => {
  const team = scenes.team(jar, word, { done: 2 });
  const { session } = await jar.chat("keeper", team.ask);
  await page.goto(`/sessions/${session}`);
  await at(page).rows().nth(1).getByRole("link").first().click();
  const child = at(page).child();
  await expect(child).toContainText(`Look at gauge 1 of ${word}.`);
  await expect(child).toContainText(`The notes of ${word} are in notes.md.`);
  await expect(child).toContainText("file_read");
  await expect(child).toContainText(`Gauge 1 of ${word} is well.`);
  await expect(child).toContainText("tide-1");
  await expect(child.getByRole("textbox")).toHaveCount(0);
  // What is shown has an address.
  await page.reload();
  await expect(at(page).child()).toContainText(`Gauge 1 of ${word} is well.`);
  await page.goBack();
  await expect(at(page).child()).toHaveCount(0);
  await expect(at(page).rows()).toHaveCount(2);
});

test("a server that is killed while a card is live comes back to the same card", async ({ page, tab, jar, guard, word }) => {
  guard.expect(/Failed to load resource|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET/);
  const team = scenes.team(jar, word, { done: 1, held: 2, failed: 1 });
  const session = await jar.begin("keeper", team.ask);
  await page.goto(`/sessions/${session}`);
  await team.gate.waited(2);
  await expect(at(page).head()).toContainText("2 of 4 done");
  await jar.kill();
  await expect(at(page).connection()).toBeVisible();
  await jar.serve();
  await team.gate.waited(4);
  await expect(at(page).connection()).toHaveCount(0);
  await expect(at(page).head()).toContainText("2 of 4 done");
  team.gate.open();
  await expect(at(page).head()).toContainText("4 of 4 done");
  await expect(at(page).conversation()).toContainText(`All gauges of ${word} were looked at.`);
  await at(page).unfold();
  const live = await card(page);
  expect(live.rows.map((row) => row[1])).toEqual(["failed", "completed", "completed", "completed"]);
  const late = await tab();
  await late.goto(page.url());
  await expect(at(late).head()).toContainText("4 of 4 done");
  await at(late).unfold();
  await expect.poll(() => card(late)).toEqual(live);
  await jar.kill();
  await jar.serve();
  await page.reload();
  await expect(at(page).head()).toContainText("4 of 4 done");
  await at(page).unfold();
  await expect.poll(() => card(page)).toEqual(live);
});

test("fifty subagents of a turn are counted and shown, and the page stays small", async ({ page, jar, word }) => {
  const team = scenes.team(jar, word, { done: 50 });
  const { session } = await jar.chat("keeper", team.ask);
  await page.goto(`/sessions/${session}`);
  await expect(at(page).head()).toContainText("50 of 50 done");
  await at(page).unfold();
  await at(page).card().getByText(`Look at gauge 0 of ${word}.`).scrollIntoViewIfNeeded();
  await at(page).card().getByText(`Look at gauge 49 of ${word}.`).scrollIntoViewIfNeeded();
  await expect(at(page).card().getByText(`Look at gauge 49 of ${word}.`)).toBeVisible();
  expect(await page.locator("*").count()).toBeLessThan(4_000);
});

test("subagents of a subagent are counted in its row, and have a card of their own in it", async ({ page, jar, word }) => {
  const { ask, goals, order } = scenes.chain(jar, word);
  const { session } = await jar.chat("keeper", ask);
  await page.goto(`/sessions/${session}`);
  await expect(at(page).head()).toContainText("1 of 1 done");
  await expect(at(page).rows()).toHaveCount(1);
  await expect(at(page).rows().first()).toContainText("chief");
  await expect(at(page).rows().first()).toContainText(/2 subagents/);
  await at(page).rows().first().getByRole("link").first().click();
  const child = at(page).child();
  await expect(child).toContainText(order);
  const inner = child.getByRole("region", { name: /subagents/i });
  await expect(inner.getByRole("heading")).toContainText("2 of 2 done");
  const rows = inner.locator("[data-child]");
  await expect(rows).toHaveCount(2);
  for (const [index, goal] of goals.entries()) await expect(rows.nth(index)).toContainText(goal);
  await rows.nth(1).getByRole("link").first().click();
  await expect(at(page).child()).toContainText(`Gauge 1 of ${word} is well.`);
  await expect(at(page).child()).toContainText("file_read");
  // What is shown has an address, and the way back leads to who sent it.
  await page.reload();
  await expect(at(page).child()).toContainText(`Gauge 1 of ${word} is well.`);
  await at(page).child().getByRole("link", { name: /^← .*chief/ }).click();
  await expect(at(page).child()).toContainText(order);
});
