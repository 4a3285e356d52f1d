// Agents: listed with what is wrong with them, edited as form and text, previewed, saved, copied, deleted.

import { at } from "../kit/at.ts";
import { expect, test, type Page } from "../kit/test.ts";

test.use({ plan: {} });

const TEXT = (name: string, more = "") =>
  `---\nname: ${name}\ndescription: Made by a test.\ntools: [file_read]\n${more}---\nYou are ${name}.\n`;

async function open(page: Page, slug: string): Promise<void> {
  await page.goto("/agents");
  await at(page).agent(slug).click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText(slug);
}

test("agents are listed with scope, status and reason", async ({ page }) => {
  await page.goto("/agents");
  await expect(at(page).agentRow("keeper")).toContainText("ready");
  await expect(page.getByRole("region", { name: "Files of the home" })).toContainText("keeper");
  await expect(at(page).agentRow("courier")).toContainText("blocked");
  await expect(at(page).agentRow("courier")).toContainText("https://example.org");
});

test("a file that is no agent is listed with its reason, and a draft with the command that takes it into use", async ({ page, jar, word }) => {
  await jar.homeFile(`agents/torn-${word}.md`, "---\nname: [\n---\nx\n");
  await jar.homeFile(`drafts/agents/draft-${word}.md`, TEXT(`draft-${word}`));
  await page.goto("/agents");
  await expect(at(page).agentRow(`torn-${word}`)).toContainText("invalid");
  await expect(at(page).agentRow(`torn-${word}`)).toContainText(`torn-${word}.md:2: `);
  const draft = at(page).agentRow(`draft-${word}`);
  await expect(draft).toContainText("draft");
  await expect(draft.locator("code")).toHaveText(`belljar drafts promote agents/draft-${word}`);
  // It is what it says.
  await jar.does("drafts", "promote", `agents/draft-${word}`);
  await expect.poll(async () => (await jar.api("GET", `/v1/agents/draft-${word}`)).status, { timeout: 60_000 }).toBe(200);
});

test("an agent for which no model would answer says so before anything is said to it", async ({ page, jar, word }) => {
  await jar.homeFile(`agents/lost-${word}.md`, TEXT(`lost-${word}`, "model: nowhere-1\nvisibility: user-facing\n"));
  await expect.poll(async () => (await jar.api("GET", `/v1/agents/lost-${word}`)).status, { timeout: 60_000 }).toBe(200);
  await page.goto("/agents");
  await expect(at(page).agentRow(`lost-${word}`)).toContainText("No model would answer for this agent: model `nowhere-1` is not configured");
  await expect(at(page).agentRow("keeper")).not.toContainText("No model");
  await page.goto("/sessions/new");
  await page.getByRole("combobox", { name: "agent" }).selectOption(`home/lost-${word}`);
  await expect(page.getByRole("main")).toContainText("nowhere-1");
  await page.getByRole("combobox", { name: "model" }).selectOption("main");
  await expect(page.getByRole("main")).not.toContainText("nowhere-1");
});

test("a blocked agent shows the command that unblocks it, which does", async ({ page, jar }) => {
  await open(page, "courier");
  const command = await page.getByRole("main").locator("code").filter({ hasText: "belljar grant" }).first().textContent();
  expect(command).toMatch(/^belljar grant \S*courier --asked$/);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("main").getByRole("button", { name: "copy" }).first().click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(command);
  await jar.does(...(command ?? "").split(" ").slice(1), "--yes");
  // Files are looked at every few seconds.
  await expect(async () => {
    await page.reload();
    await expect(page.getByRole("main")).toContainText("ready", { timeout: 2_000 });
  }).toPass({ timeout: 60_000 });
  await jar.does("revoke", "courier", "--all", "--yes");
});

test("an agent of a file is read-only, and can be copied", async ({ page, jar, word }) => {
  await open(page, "scout");
  await expect(page.getByRole("button", { name: "save" })).toHaveCount(0);
  await expect(page.getByRole("button", { name: "delete" })).toHaveCount(0);
  await page.getByRole("link", { name: "duplicate" }).click();
  await at(page).field("Name").fill(`copy-${word}`);
  await page.getByRole("button", { name: "save" }).click();
  await expect.poll(async () => (await jar.api("GET", `/v1/agents/copy-${word}`)).status).toBe(200);
  expect((await jar.get(`/v1/agents/copy-${word}`)).text).toContain("You find files.");
});

test("an agent is made with the form, and its text says the same", async ({ page, jar, word }) => {
  await page.goto("/agents/new");
  await at(page).field("Name").fill(`made-${word}`);
  await at(page).field("Description").fill(`Reads for ${word}.`);
  await expect(at(page).source()).toContainText(`description: Reads for ${word}.`);
  await page.getByRole("checkbox", { name: /file_read/ }).check();
  await expect(at(page).source()).toContainText("file_read");
  await page.getByRole("button", { name: "save" }).click();
  await expect.poll(async () => (await jar.api("GET", `/v1/agents/made-${word}`)).status).toBe(200);
  const stored = await jar.get(`/v1/agents/made-${word}`);
  expect(stored.definition).toMatchObject({ description: `Reads for ${word}.` });
  expect(stored.text).toContain("file_read");
});

test("what is typed into the text stands in the form", async ({ page, jar, word }) => {
  await jar.post("/v1/agents", { slug: `both-${word}`, text: TEXT(`both-${word}`) });
  await open(page, `both-${word}`);
  await expect(at(page).field("Description")).toHaveValue("Made by a test.");
  await expect(page.getByRole("checkbox", { name: /file_read/ })).toBeChecked();
  await at(page).type(TEXT(`both-${word}`).replace("Made by a test.", `Typed by ${word}.`).replace("[file_read]", "[file_list]"));
  await expect(at(page).field("Description")).toHaveValue(`Typed by ${word}.`);
  await expect(page.getByRole("checkbox", { name: /file_read/ })).not.toBeChecked();
  await expect(page.getByRole("checkbox", { name: /file_list/ })).toBeChecked();
});

test("what is wrong is said on its line while it is typed", async ({ page, jar, word }) => {
  await jar.post("/v1/agents", { slug: `wrong-${word}`, text: TEXT(`wrong-${word}`) });
  await open(page, `wrong-${word}`);
  await at(page).type(TEXT(`wrong-${word}`).replace("file_read", "file_raed"));
  await expect(at(page).diagnostics()).toContainText("file_raed");
  await expect(at(page).diagnostics()).toContainText("line 4");
  await at(page).type(TEXT(`wrong-${word}`));
  await expect(at(page).diagnostics()).not.toContainText("file_raed");
});

test("the preview is exactly what the model is sent", async ({ page, jar, word }) => {
  await jar.post("/v1/agents", { slug: `seen-${word}`, text: TEXT(`seen-${word}`) });
  await jar.chat(`library/api/seen-${word}`, `Look, ${word}.`);
  const sent = jar.model.sent.find((one) => one.task === `Look, ${word}.`)?.request;
  const system = sent?.messages.find((message) => message.role === "system")?.content as string;
  expect(system).toContain(`You are seen-${word}.`);
  await open(page, `seen-${word}`);
  await at(page).preview();
  await expect(page.getByRole("main")).toContainText(`You are seen-${word}.`);
  await expect(page.getByRole("main")).toContainText("file_read");
  await expect(page.getByRole("main")).toContainText(/tok/);
});

test("the preview is of what stands in the editor, saved or not, and saves nothing", async ({ page, jar, word }) => {
  await jar.post("/v1/agents", { slug: `typed-${word}`, text: TEXT(`typed-${word}`) });
  await open(page, `typed-${word}`);
  await at(page).type(TEXT(`typed-${word}`).replace("You are", "You were"));
  await at(page).preview();
  await expect(page.getByRole("main")).toContainText(`You were typed-${word}.`);
  expect((await jar.get(`/v1/agents/typed-${word}`)).text).toContain("You are");
  expect(jar.model.sent.filter((one) => JSON.stringify(one.request).includes("You were"))).toHaveLength(0);
});

test("the model is chosen among roles, each with the model that plays it", async ({ page, jar }) => {
  const { roles, models } = await jar.get("/v1/roles");
  const main = roles.find((one: { role: string }) => one.role === "main").model;
  expect(models).toContain(main);
  await page.goto("/agents/new");
  const field = page.getByRole("combobox", { name: "Model", exact: true });
  await expect(field.getByRole("option", { name: `Role main: ${main}` })).toHaveCount(1);
  await field.selectOption({ label: "A model by name …" });
  await expect(page.locator(`datalist option[value="${main}"]`)).toHaveCount(1);
});

test("a saved agent is the one that runs, and its reload shows it", async ({ page, jar, word }) => {
  await jar.post("/v1/agents", { slug: `kept-${word}`, text: TEXT(`kept-${word}`) });
  await open(page, `kept-${word}`);
  await at(page).type(TEXT(`kept-${word}`).replace(`You are kept-${word}.`, `You are new-${word}.`));
  await page.getByRole("button", { name: "save" }).click();
  await expect.poll(async () => (await jar.get(`/v1/agents/kept-${word}`)).text).toContain(`You are new-${word}.`);
  // Until the page knows that it is saved, it asks before it is left.
  await expect(page.getByRole("status").filter({ hasText: "Saved" })).toBeVisible();
  await page.reload();
  await expect(at(page).source()).toContainText(`You are new-${word}.`);
});

test("what was typed is not lost by a key or by the browser's way back", async ({ page, jar, guard, word }) => {
  guard.asked(/./);
  await jar.post("/v1/agents", { slug: `typed-${word}`, text: TEXT(`typed-${word}`) });
  await page.goto("/agents");
  await at(page).agent(`typed-${word}`).click();
  await expect(at(page).source()).toContainText(`You are typed-${word}.`);
  await at(page).type(TEXT(`typed-${word}`).replace("You are", "They are"));
  const url = page.url();
  const leave = async (how: () => Promise<unknown>) => {
    const [dialog] = await Promise.all([page.waitForEvent("dialog"), how()]);
    expect(dialog.type()).toBe("confirm");
    await expect(page).toHaveURL(url);
    await expect(at(page).source()).toContainText(`They are typed-${word}.`);
  };
  await page.keyboard.press("Escape");
  await leave(() => page.keyboard.press("Escape"));
  await leave(() => page.evaluate(() => history.back()));
  await leave(() => page.getByRole("navigation", { name: "views" }).getByRole("link", { name: "tools" }).click());
  // A look at the preview is no leaving.
  await at(page).preview();
  await expect(page.getByRole("main")).toContainText("What a model is sent first");
});

test("who saves over somebody else's change is told, and loses nothing", async ({ page, tab, jar, word }) => {
  await jar.post("/v1/agents", { slug: `two-${word}`, text: TEXT(`two-${word}`) });
  const other = await tab();
  await open(page, `two-${word}`);
  await open(other, `two-${word}`);
  await at(other).type(TEXT(`two-${word}`).replace("You are", "They are"));
  await other.getByRole("button", { name: "save" }).click();
  await expect.poll(async () => (await jar.get(`/v1/agents/two-${word}`)).text).toContain("They are");
  await at(page).type(TEXT(`two-${word}`).replace("You are", "We are"));
  await page.getByRole("button", { name: "save" }).click();
  await expect(page.getByRole("main")).toContainText(/somebody else|changed/i);
  expect((await jar.get(`/v1/agents/two-${word}`)).text).toContain("They are");
  await expect(at(page).source()).toContainText("We are");
});

test("an agent is deleted after it was asked for", async ({ page, jar, word }) => {
  await jar.post("/v1/agents", { slug: `gone-${word}`, text: TEXT(`gone-${word}`) });
  await open(page, `gone-${word}`);
  await page.getByRole("button", { name: "delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "delete" }).click();
  await expect.poll(async () => (await jar.api("GET", `/v1/agents/gone-${word}`)).status).toBe(404);
  await expect(page).toHaveURL(/\/agents$/);
  await expect(at(page).agent(`gone-${word}`)).toHaveCount(0);
});
