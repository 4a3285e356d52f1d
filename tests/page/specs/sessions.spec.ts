// The list of sessions: searched, narrowed, long, and deleted with what goes along.

import { at } from "../kit/at.ts";
import type { Jar } from "../kit/jar.ts";
import * as scenes from "../kit/scenes.ts";
import { expect, test } from "../kit/test.ts";

test.use({ plan: {} });

const MANY = 500;

/** Begins so many sessions, some at a time. */
async function many(jar: Jar): Promise<void> {
  const { sessions } = await jar.get("/v1/sessions?limit=1");
  if (sessions[0]?.title.startsWith("Number")) return;
  const left = [...Array(MANY).keys()];
  const next = async (): Promise<void> => {
    for (let index = left.shift(); index !== undefined; index = left.shift()) await jar.chat("teller", `Number ${index} of many.`);
  };
  await Promise.all([next(), next(), next(), next()]);
}

test("a search finds a session by what was said first", async ({ page, jar, word }) => {
  await jar.chat("teller", scenes.told(jar, word, `Found ${word}.`));
  await jar.chat("teller", scenes.told(jar, "elsewhere", "Not this one."));
  await page.goto("/sessions");
  await expect(at(page).sessions().filter({ hasText: "elsewhere" }).first()).toBeVisible();
  await page.getByRole("searchbox", { name: /search/i }).fill(word);
  await expect(at(page).sessions().filter({ hasText: "elsewhere" })).toHaveCount(0);
  await expect(at(page).sessions()).toHaveCount(1);
  await at(page).sessions().first().click();
  await expect(at(page).conversation()).toContainText(`Found ${word}.`);
});

test("a search that finds nothing says so", async ({ page, jar, word }) => {
  await jar.chat("teller", scenes.told(jar, word, `There, ${word}.`));
  await page.goto("/sessions");
  await page.getByRole("searchbox", { name: /search/i }).fill(`${word} nowhere`);
  await expect(at(page).sessions()).toHaveCount(0);
  await expect(page.getByText("No session fits")).toBeVisible();
});

test("a session that runs is marked, and found by that", async ({ page, jar, word }) => {
  const { ask, gate } = scenes.slow(jar, word);
  await jar.chat("teller", scenes.told(jar, `${word}b`, `At rest, ${word}.`));
  await jar.begin("teller", ask);
  await page.goto("/sessions");
  await page.getByRole("button", { name: /^running/ }).click();
  await expect(at(page).sessions().filter({ hasText: word })).toHaveCount(1);
  await expect(at(page).sessions().filter({ hasText: ask })).toContainText(/running/);
  gate.open();
  await expect(at(page).sessions().filter({ hasText: word })).toHaveCount(0);
});

test("a session that waits for a person is found by that, until it is answered", async ({ page, jar, word }) => {
  const { ask, gate } = scenes.slow(jar, `${word}b`);
  await jar.begin("teller", ask);
  const session = await jar.begin("asker", scenes.asking(jar, word));
  await page.goto(`/sessions/${session}`);
  await page.getByRole("button", { name: /^waiting/ }).click();
  await expect(at(page).sessions().filter({ hasText: `Write it down, ${word}.` })).toContainText(/waiting/);
  await expect(at(page).sessions().filter({ hasText: ask })).toHaveCount(0);
  await expect(page.getByRole("alert")).toHaveCount(0);
  await at(page).question().getByRole("button", { name: /^no/i }).click();
  await expect(at(page).sessions().filter({ hasText: word })).toHaveCount(0);
  gate.open();
});

test("sessions of another kind are found by it", async ({ page, jar, word }) => {
  await jar.chat("teller", scenes.told(jar, word, `Here, ${word}.`));
  jar.model.play(`On the command line, ${word}.`, { say: "There." });
  await jar.does("run", "--agent", "teller", `On the command line, ${word}.`);
  await page.goto("/sessions");
  await page.getByRole("combobox", { name: /kind/i }).selectOption("run");
  await expect(at(page).sessions().filter({ hasText: `On the command line, ${word}.` })).toHaveCount(1);
  await expect(at(page).sessions().filter({ hasText: `Tell me, ${word}.` })).toHaveCount(0);
});

test("before a session is deleted, it is said what goes with it", async ({ page, jar, word }) => {
  const team = scenes.team(jar, word, { done: 2 });
  const { session } = await jar.chat("keeper", team.ask);
  await page.goto(`/sessions/${session}`);
  await page.getByRole("button", { name: /delete/i }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText(/2 messages/);
  await expect(dialog).toContainText("2 subagents");
  await expect(dialog).toContainText(/2 receipts/);
  await dialog.getByRole("button", { name: /^(keep|cancel)/i }).click();
  expect((await jar.api("GET", `/v1/sessions/${session}`)).status).toBe(200);
  await page.getByRole("button", { name: /delete/i }).click();
  await dialog.getByRole("button", { name: /^delete/i }).click();
  await expect(page).not.toHaveURL(new RegExp(session));
  expect((await jar.api("GET", `/v1/sessions/${session}`)).status).toBe(404);
  await expect(at(page).sessions().filter({ hasText: word })).toHaveCount(0);
});

test("a new session of another tab appears by itself", async ({ page, jar, word }) => {
  await page.goto("/sessions");
  await expect(page.getByRole("searchbox", { name: /search/i })).toBeVisible();
  await jar.chat("teller", scenes.told(jar, word, `New, ${word}.`));
  await expect(at(page).sessions().filter({ hasText: word })).toHaveCount(1);
});

test("of 500 sessions the last one is reached, and the page stays small", async ({ page, jar }) => {
  await many(jar);
  await page.goto("/sessions");
  await expect(at(page).sessions().first()).toContainText("of many.");
  expect(await page.locator("*").count()).toBeLessThan(3_000);
  const oldest = at(page).sessions().filter({ hasText: "Number 0 of many." });
  await expect(async () => {
    await page.getByRole("button", { name: "Show older sessions" }).click({ timeout: 2_000 }).catch(() => undefined);
    expect(await oldest.count()).toBe(1);
  }).toPass({ timeout: 60_000 });
  expect(await page.locator("*").count()).toBeLessThan(6_000);
  await oldest.click();
  await expect(at(page).conversation()).toContainText("Noted: Number 0 of many.");
});
