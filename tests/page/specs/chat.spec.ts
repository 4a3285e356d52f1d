// Talking with an agent: streamed answers, markdown, files, cancelling, and coming back in the middle of it.

import { readFile } from "node:fs/promises";
import { at } from "../kit/at.ts";
import * as scenes from "../kit/scenes.ts";
import { expect, test } from "../kit/test.ts";

test.use({ plan: {} });

test("an answer is shown as it is made, and is the same when it is over", async ({ page, jar, word }) => {
  const { ask, gate } = scenes.slow(jar, word);
  await page.goto("/sessions/new");
  await at(page).begin("teller", ask);
  await expect(at(page).conversation()).toContainText(ask);
  await expect(at(page).conversation()).toContainText(`The first half of ${word}`);
  await expect(at(page).conversation()).not.toContainText("the second half");
  gate.open();
  await expect(at(page).conversation()).toContainText(`The first half of ${word}, and the second half of ${word}.`);
  await page.reload();
  await expect(at(page).conversation()).toContainText(`The first half of ${word}, and the second half of ${word}.`);
});

test("who joins in the middle of an answer sees all of it", async ({ page, tab, jar, word }) => {
  const { ask, gate } = scenes.slow(jar, word);
  const session = await jar.begin("teller", ask);
  await gate.waited();
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText(`The first half of ${word}`);
  await page.reload();
  await expect(at(page).conversation()).toContainText(`The first half of ${word}`);
  const other = await tab();
  await other.goto(`/sessions/${session}`);
  await expect(at(other).conversation()).toContainText(`The first half of ${word}`);
  gate.open();
  for (const one of [page, other]) {
    await expect(at(one).conversation()).toContainText(`the second half of ${word}.`);
    await expect(at(one).conversation().getByText(`The first half of ${word}`)).toHaveCount(1);
  }
});

test("what is said in one tab stands in the other", async ({ page, tab, jar, word }) => {
  const { session } = await jar.chat("teller", scenes.told(jar, word, `One of ${word}.`));
  const other = await tab();
  await page.goto(`/sessions/${session}`);
  await other.goto(`/sessions/${session}`);
  await expect(at(other).conversation()).toContainText(`One of ${word}.`);
  const ask = scenes.told(jar, `${word}b`, `Two of ${word}.`);
  await at(page).say(ask);
  for (const one of [page, other]) {
    await expect(at(one).conversation()).toContainText(ask);
    await expect(at(one).conversation()).toContainText(`Two of ${word}.`);
  }
});

test("the end of a conversation stays in sight until somebody scrolls up", async ({ page, jar, word }) => {
  const long = (name: string) => `${[...Array(60).keys()].map((line) => `${name} ${line}.`).join("\n\n")}\n\nEnd of ${name}.`;
  const { session } = await jar.chat("teller", scenes.told(jar, word, long(word)));
  await jar.chat("teller", scenes.told(jar, `${word}a`, `End of ${word}a.`), session);
  await page.goto(`/sessions/${session}`);
  const end = (name: string) => at(page).conversation().getByText(`End of ${name}.`);
  await expect(end(`${word}a`)).toBeInViewport();
  await at(page).conversation().hover();
  await page.mouse.wheel(0, -900);
  await expect(end(`${word}a`)).not.toBeInViewport();
  await page.mouse.wheel(0, 10_000);
  await expect(end(`${word}a`)).toBeInViewport();
  // A row grows by itself, and the list is told of a scroll before it is told of that.
  await end(`${word}a`).evaluate((text) => {
    const row = text.closest<HTMLElement>("[data-row]");
    if (!row) throw new Error("the text stands in no row");
    row.style.paddingTop = "400px";
    text.closest("[data-virtual]")?.dispatchEvent(new Event("scroll"));
  });
  await expect(end(`${word}a`)).toBeInViewport();
  await jar.chat("teller", scenes.told(jar, `${word}b`, long(`${word}b`)), session);
  await expect(end(`${word}b`)).toBeInViewport();
  await page.mouse.wheel(0, -300);
  await expect(end(`${word}b`)).not.toBeInViewport();
  await jar.chat("teller", scenes.told(jar, `${word}c`, `Three of ${word}.`), session);
  await expect(at(page).conversation()).toContainText(`Three of ${word}.`);
  await expect(at(page).conversation().getByText(`Three of ${word}.`)).not.toBeInViewport();
});

test("markdown is shown as what it means", async ({ page, jar, word }) => {
  const text = [
    `# Tides of ${word}`,
    "Low at **12:30**, *maybe*, see `notes.md`.",
    "- one\n- two",
    "| tide | time |\n| --- | --- |\n| high | 06:12 |",
    "```python\nDATUM = 0.35\n```",
    "> quoted",
  ].join("\n\n");
  const { session } = await jar.chat("teller", scenes.told(jar, word, text));
  await page.goto(`/sessions/${session}`);
  const answer = at(page).conversation();
  await expect(answer.getByRole("heading", { name: `Tides of ${word}` })).toBeVisible();
  await expect(answer.getByRole("cell", { name: "06:12" })).toBeVisible();
  await expect(answer.getByRole("columnheader", { name: "time" })).toBeVisible();
  await expect(answer.getByRole("listitem").filter({ hasText: /^one$/ })).toBeVisible();
  await expect(answer.locator("pre code")).toHaveText(/DATUM = 0\.35/);
  await expect(answer.getByRole("strong").filter({ hasText: "12:30" })).toBeVisible();
  await expect(answer.locator("blockquote")).toHaveText(/quoted/);
});

test("the page has no image and no link of an answer's that leads elsewhere by itself", async ({ page, jar, word }) => {
  const text = `![seen](http://evil.invalid/${word}.png) and [a table](https://example.org/${word})`;
  const { session } = await jar.chat("teller", scenes.told(jar, word, text));
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText("a table");
  await expect(at(page).conversation().locator("img[src^=http]")).toHaveCount(0);
  const link = at(page).conversation().getByRole("link", { name: /a table/ });
  await expect(link).toHaveAttribute("href", `https://example.org/${word}`);
  // It leaves the page where it is, and tells nobody where it came from.
  await expect(link).toHaveAttribute("target", "_blank");
  await expect(link).toHaveAttribute("rel", /noopener noreferrer/);
});

test("a file that an agent hands over is there to be taken", async ({ page, jar, word }) => {
  await jar.file(`chart-${word}.csv`, `tide,time\nhigh,06:12\n${word},1\n`);
  const ask = `Give me the chart, ${word}.`;
  jar.model.play(ask, { calls: [{ name: "attach_file", arguments: { path: `chart-${word}.csv` } }] }, { say: `Here it is, ${word}.` });
  const { session } = await jar.chat("keeper", ask);
  await page.goto(`/sessions/${session}`);
  const file = at(page).conversation().getByRole("listitem").filter({ hasText: `chart-${word}.csv` });
  await file.getByRole("button", { name: "View" }).click();
  await expect(page.getByRole("dialog")).toContainText(`${word},1`);
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  const link = file.getByRole("link", { name: "Download" });
  const [download] = await Promise.all([page.waitForEvent("download"), link.click()]);
  expect(download.suggestedFilename()).toBe(`chart-${word}.csv`);
  expect(await readFile(await download.path(), "utf8")).toContain(word);
});

test("a turn is cancelled, and says so", async ({ page, jar, word }) => {
  const { ask, gate } = scenes.slow(jar, word);
  await page.goto("/sessions/new");
  await at(page).begin("teller", ask);
  await gate.waited();
  await page.getByRole("button", { name: /^cancel/i }).click();
  await expect(at(page).conversation()).toContainText(/cancelled/i);
  await jar.idle(at(page).session());
  // Another turn can begin.
  await at(page).say(scenes.told(jar, `${word}b`, `Again, ${word}.`));
  await expect(at(page).conversation()).toContainText(`Again, ${word}.`);
});

test("agent and model are chosen at the start, and shown from then on", async ({ page, jar, word }) => {
  const ask = scenes.told(jar, word, `Told by ${word}.`);
  await page.goto("/sessions/new");
  await page.getByRole("combobox", { name: "model" }).selectOption("fast");
  await at(page).begin("teller", ask);
  await expect(at(page).conversation()).toContainText(`Told by ${word}.`);
  const stored = await jar.get(`/v1/sessions/${at(page).session()}`);
  expect(stored).toMatchObject({ agent: "home/teller", model: "fast" });
  await page.reload();
  await expect(page.getByRole("main")).toContainText("teller");
  await expect(page.getByRole("main")).toContainText("brook-1");
  await expect(page.getByRole("combobox", { name: "agent" })).toHaveCount(0);
});

test("an agent that cannot be used is not offered, or says why", async ({ page }) => {
  await page.goto("/sessions/new");
  const agents = page.getByRole("combobox", { name: "agent" });
  await expect(agents.locator("option").filter({ hasText: "keeper" })).toHaveCount(1);
  await expect(agents.locator("option").filter({ hasText: "broken" })).toHaveCount(0);
  // One that is blocked says why.
  await agents.selectOption("home/courier");
  await expect(page.getByRole("main")).toContainText(/blocked/);
  await expect(page.getByRole("main")).toContainText("https://example.org");
});

test("a model that gives no answer is said in a sentence", async ({ page, jar, word }) => {
  const ask = `Fail, ${word}.`;
  jar.model.play(ask, { fail: 400 });
  await page.goto("/sessions/new");
  await at(page).begin("teller", ask);
  await expect(at(page).conversation()).toContainText("failed");
  await expect(at(page).conversation()).toContainText("the tide is out");
});

test("a limit that ends a turn is named", async ({ page, jar, word }) => {
  const ask = `Go on for ever, ${word}.`;
  const look = { calls: [{ name: "file_read", arguments: { path: "notes.md" } }] };
  jar.model.play(ask, look, look, look, { say: `As far as I got, ${word}.` });
  const { session } = await jar.post("/v1/chat", { agent: "scout", text: ask, limits: { steps: 2 } });
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText("partial");
  await expect(at(page).conversation()).toContainText(/steps?/);
});

test("where older turns were summarised, it says so, and the summary can be read", async ({ page, jar, word }) => {
  const long = "The tide was high and the gauge was read. ".repeat(60);
  const { session } = await jar.post("/v1/chat", { agent: "teller", model: "brook", text: scenes.told(jar, `${word}0`, long) });
  for (const turn of [1, 2, 3, 4, 5]) await jar.chat("teller", scenes.told(jar, `${word}${turn}`, `${turn} ${long}`), session);
  const { summary } = await jar.get(`/v1/sessions/${session}/messages`);
  expect(summary?.text).toBeTruthy();
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText(/sent (to the model )?as a summary/i);
});

test("a session that is deleted elsewhere says so by itself, and what was typed stands in the next one", async ({ page, jar, word }) => {
  const { session } = await jar.chat("teller", scenes.told(jar, word, `Farewell, ${word}.`));
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText(`Farewell, ${word}.`);
  await at(page).message().fill(`Are you there, ${word}?`);
  await jar.api("DELETE", `/v1/sessions/${session}`);
  await expect(page.getByRole("main")).toContainText("This session is gone");
  await page.getByRole("main").getByRole("link").first().click();
  await expect(page).toHaveURL(/\/sessions\/new$/);
  await expect(at(page).message()).toHaveValue(`Are you there, ${word}?`);
});

test("who says something to a session that is gone is told so, and keeps the words", async ({ page, jar, word }) => {
  const { session } = await jar.chat("teller", scenes.told(jar, word, `Farewell, ${word}.`));
  // It is deleted when the words are on their way.
  await page.route("**/v1/chat", async (route) => {
    await jar.api("DELETE", `/v1/sessions/${session}`);
    await route.continue();
  });
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText(`Farewell, ${word}.`);
  await at(page).say(`Are you there, ${word}?`);
  await expect(page.getByRole("main")).toContainText("This session is gone");
  await page.reload();
  await expect(page.getByRole("main")).toContainText("This session is gone");
  await page.getByRole("main").getByRole("link").first().click();
  await expect(at(page).message()).toHaveValue(`Are you there, ${word}?`);
});

test("a server that restarts is waited for, and what happened meanwhile is caught up with", async ({ page, jar, guard, word }) => {
  guard.expect(/ERR_/);
  const { session } = await jar.chat("teller", scenes.told(jar, word, `Before, ${word}.`));
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText(`Before, ${word}.`);
  await jar.terminate();
  await expect(at(page).connection()).toBeVisible();
  await jar.serve();
  await jar.chat("teller", scenes.told(jar, `${word}b`, `Meanwhile, ${word}.`), session);
  await expect(at(page).conversation()).toContainText(`Meanwhile, ${word}.`);
  await expect(at(page).connection()).toHaveCount(0);
  await expect(at(page).conversation().getByText(`Before, ${word}.`)).toHaveCount(1);
});

test("a view that cannot be loaded says why, and is there when the server is", async ({ page, jar, guard, word }) => {
  guard.expect(/ERR_|Failed to fetch dynamically/);
  const { session } = await jar.chat("teller", scenes.told(jar, word, `Here, ${word}.`));
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText(`Here, ${word}.`);
  await jar.terminate();
  await page.getByRole("navigation", { name: "views" }).getByRole("link", { name: "libraries" }).click();
  await expect(page.getByRole("main")).toContainText(/server does not answer|nobody answers|cannot be reached/i);
  await expect(page.getByRole("main")).not.toContainText(/updated/);
  await jar.serve();
  await page.getByRole("main").getByRole("button", { name: /reload/i }).click();
  await expect(page.getByRole("main")).toContainText("Agents that somebody else wrote");
});

test("what would freeze or break the reading of an answer is shown as it is", async ({ page, jar, word }) => {
  const texts = [">".repeat(5_000), `${"- ".repeat(2_000)}x`, `${"a.".repeat(25_000)}@`, "_a_b".repeat(12_000)];
  let session: string | undefined;
  for (const [index, text] of texts.entries()) {
    const ask = `Text ${index}, ${word}.`;
    jar.model.play(ask, { say: `${text}\n\nEnd of ${index}, ${word}.` });
    session = (await jar.chat("teller", ask, session)).session;
    await page.goto(`/sessions/${session}`);
    await expect(at(page).conversation()).toContainText(`End of ${index}, ${word}.`);
  }
  await expect(at(page).message()).toBeEnabled();
});

test("a page that is older than its server says so and offers a reload", async ({ page, jar, word }) => {
  const { session } = await jar.chat("teller", scenes.told(jar, word, `Old page, ${word}.`));
  await page.route("**/v1/me", async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), page: "0123456789abcdef" } });
  });
  await page.goto(`/sessions/${session}`);
  await expect(page.getByText(/updated/i)).toBeVisible();
  await expect(page.getByRole("button", { name: /reload/i })).toBeVisible();
  await expect(at(page).conversation()).toContainText(`Old page, ${word}.`);
});

test("what was typed and not yet sent is still there after a look elsewhere", async ({ page, jar, word }) => {
  const { session } = await jar.chat("teller", scenes.told(jar, word, `Draft, ${word}.`));
  await page.goto(`/sessions/${session}`);
  await at(page).message().fill(`half a thought of ${word}`);
  await page.getByRole("navigation", { name: "views" }).getByRole("link", { name: "usage" }).click();
  await page.goBack();
  await expect(at(page).message()).toHaveValue(`half a thought of ${word}`);
});
