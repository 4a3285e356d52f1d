// Getting in: with a key, by the link that opens once, and getting out again. Three tenants, each of which
// sees its own.

import type { Reply } from "../kit/jar.ts";
import { Jar } from "../kit/jar.ts";
import { accessibleInBoth, expect, fits, Gate, test, type Page } from "../kit/test.ts";

const TENANTS = ["local", "blue", "red"];
const keys: Record<string, string> = {};

test.use({
  plan: {
    before: async (jar: Jar) => {
      for (const tenant of TENANTS) {
        if (tenant !== "local") await jar.does("tenants", "add", tenant);
        keys[tenant] = await jar.key(tenant, "admin");
      }
    },
  },
});

function cookie(answer: Reply): string {
  const set = answer.headers.getSetCookie();
  expect(set).toHaveLength(1);
  return set[0] ?? "";
}

async function login(jar: Jar, key: string): Promise<string> {
  const answer = await jar.api("POST", "/v1/login", { key }, { origin: jar.url });
  expect(answer.status).toBe(204);
  return cookie(answer).split(";")[0] ?? "";
}

test("a key gives a cookie that no script reads and no other page sends", async ({ jar }) => {
  const answer = await jar.api("POST", "/v1/login", { key: keys.blue }, { origin: jar.url });
  expect(answer.status).toBe(204);
  const parts = cookie(answer).split(";").map((part) => part.trim());
  expect(parts[0]).toMatch(/^belljar(-\d+)?=/);
  expect(parts).toEqual(expect.arrayContaining(["HttpOnly", "SameSite=Strict", "Path=/"]));
  expect(answer.text).toBe("");
  expect(cookie(answer)).not.toContain(keys.blue?.slice(20));
  const me = await jar.api("GET", "/v1/me", undefined, { cookie: parts[0] ?? "" });
  expect(me.json).toMatchObject({ tenant: "blue", scope: "admin" });
});

test("a wrong key, a used link and a made-up cookie open nothing", async ({ jar }) => {
  const wrong = `${keys.blue?.slice(0, 20)}${keys.red?.slice(20)}`;
  for (const body of [{ key: wrong }, { key: "" }, { once: "made-up" }, {}]) {
    const answer = await jar.api("POST", "/v1/login", body, { origin: jar.url });
    expect([JSON.stringify(body), answer.status >= 400]).toEqual([JSON.stringify(body), true]);
    expect(answer.headers.getSetCookie()).toEqual([]);
  }
  const me = await jar.api("GET", "/v1/me", undefined, { cookie: `belljar-${new URL(jar.url).port}=0000000000000000` });
  expect(me.status).toBe(401);
});

test("a cookie does nothing for a page of another origin", async ({ jar }) => {
  const own = await login(jar, keys.blue ?? "");
  const before = await jar.api("GET", "/v1/agents", undefined, { cookie: own });
  const text = "---\nname: planted\ndescription: Planted.\ntools: []\n---\nHello.\n";
  for (const origin of ["http://evil.invalid", "null", jar.url.replace("127.0.0.1", "localhost.evil.invalid"), undefined]) {
    const headers: Record<string, string> = { cookie: own, ...(origin ? { origin } : {}) };
    const answer = await jar.api("POST", "/v1/agents", { slug: "planted", text }, headers);
    expect([origin, answer.status]).toEqual([origin, 403]);
  }
  expect((await jar.api("GET", "/v1/agents", undefined, { cookie: own })).json).toEqual(before.json);
  const right = await jar.api("POST", "/v1/agents/validate", { text }, { cookie: own, origin: jar.url });
  expect(right.status).toBe(200);
});

test("a logged out cookie is worth nothing any more", async ({ jar }) => {
  const own = await login(jar, keys.red ?? "");
  const other = await login(jar, keys.red ?? "");
  const out = await jar.api("POST", "/v1/logout", undefined, { cookie: own, origin: jar.url });
  expect(out.status).toBe(204);
  // Each that the browser may hold under this name.
  for (const forgotten of out.headers.getSetCookie()) expect(forgotten).toContain("Max-Age=0");
  expect(out.headers.getSetCookie()).not.toHaveLength(0);
  expect((await jar.api("GET", "/v1/me", undefined, { cookie: own })).status).toBe(401);
  expect((await jar.api("GET", "/v1/me", undefined, { cookie: other })).status).toBe(200);
});

/** Logs a page in as a person does. */
async function enter(page: Page, key: string): Promise<void> {
  await page.goto("/");
  await page.getByLabel("Key", { exact: true }).fill(key);
  await page.getByRole("button", { name: "log in" }).click();
  await expect(page.getByRole("navigation", { name: "views" }).first()).toBeVisible();
}

test("a person logs in with a key and is where they wanted to go", async ({ page, jar }) => {
  await page.goto("/usage?since=2026-01-01");
  await page.getByLabel("Key", { exact: true }).fill(`${keys.blue?.slice(0, 20)}${keys.red?.slice(20)}`);
  await page.getByRole("button", { name: "log in" }).click();
  await expect(page.getByRole("alert")).toContainText("does not open");
  await page.getByLabel("Key", { exact: true }).fill(` ${keys.blue} `);
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(`${jar.url}/usage?since=2026-01-01`);
  await expect(page.getByRole("heading", { level: 1 })).toContainText(/usage/i);
  await page.reload();
  await expect(page.getByRole("heading", { level: 1 })).toContainText(/usage/i);
  // No script can read what opens the door.
  const seen = await page.evaluate(() => [document.cookie, JSON.stringify(localStorage), JSON.stringify(sessionStorage)]);
  for (const text of seen) expect(text).not.toContain(keys.blue?.slice(20));
  expect(seen[0]).toBe("");
});

test("the link that the server prints opens once, and leaves nothing in the address", async ({ jar, browserOf }) => {
  await jar.terminate();
  await jar.serveAtTerminal();
  await expect.poll(() => jar.link).toMatch(/#once=/);
  const link = jar.link ?? "";
  expect(link.startsWith(`${jar.url}/login#once=`)).toBe(true);
  const first = await browserOf(jar);
  await first.goto(link);
  await expect(first.getByRole("navigation", { name: "views" }).first()).toBeVisible();
  expect(first.url()).not.toContain("once");
  const second = await browserOf(jar);
  await second.goto(link);
  await expect(second.getByRole("alert")).toContainText(/used already/);
  await expect(second.getByLabel("Key", { exact: true })).toBeVisible();
  expect(await second.context().cookies()).toEqual([]);
});

test("the link opens where the way in is shown already, too", async ({ jar, browserOf }) => {
  await jar.terminate();
  await jar.serveAtTerminal();
  await expect.poll(() => jar.link).toMatch(/#once=/);
  const page = await browserOf(jar);
  await page.goto("/login");
  await expect(page.getByLabel("Key", { exact: true })).toBeVisible();
  // Pasted into the address bar, which changes what stands behind the `#` and no more.
  await page.goto(jar.link ?? "");
  await expect(page.getByRole("navigation", { name: "views" }).first()).toBeVisible();
  expect(page.url()).not.toContain("once");
});

test("logging out ends it in every tab at once", async ({ page, tab }) => {
  await enter(page, keys.blue ?? "");
  const other = await tab();
  await other.goto("/usage");
  await expect(other.getByRole("heading", { level: 1 })).toContainText(/usage/i);
  await page.getByRole("button", { name: "log out" }).click();
  for (const one of [page, other]) await expect(one.getByLabel("Key", { exact: true })).toBeVisible();
  expect((await page.context().cookies()).filter((one) => one.value !== "")).toEqual([]);
  await other.reload();
  await expect(other.getByLabel("Key", { exact: true })).toBeVisible();
  // And logging in lets every tab in again, where it was.
  await page.getByLabel("Key", { exact: true }).fill(keys.blue ?? "");
  await page.keyboard.press("Enter");
  await expect(other.getByRole("heading", { level: 1 })).toContainText(/usage/i);
});

/** Says something as a tenant; gives its session. */
async function said(jar: Jar, tenant: string, text: string, answer: string): Promise<string> {
  jar.model.play(text, { say: answer });
  const turn = await jar.api("POST", "/v1/chat", { agent: "general-purpose", text }, { authorization: `Bearer ${keys[tenant]}` });
  return turn.json.session;
}

test("who logs in after somebody else has the page to themselves, in every tab", async ({ page, tab, jar, word }) => {
  const session = await said(jar, "blue", `For blue alone, ${word}.`, `Kept for blue, ${word}.`);
  await said(jar, "red", `For red alone, ${word}.`, `Kept for red, ${word}.`);
  await enter(page, keys.blue ?? "");
  const other = await tab();
  await other.goto(`/sessions/${session}`);
  await expect(other.getByText(`Kept for blue, ${word}.`)).toBeVisible();
  await other.getByRole("textbox", { name: "message" }).fill(`a secret of ${word}`);
  await page.getByRole("button", { name: "log out" }).click();
  await page.getByLabel("Key", { exact: true }).fill(keys.red ?? "");
  await page.keyboard.press("Enter");
  for (const one of [page, other]) {
    await expect(one.getByText(`For red alone, ${word}.`).first()).toBeVisible();
    await expect(one.locator("body")).not.toContainText(/blue/);
  }
  await expect(other.getByRole("main")).toContainText("This session is gone");
  const left = await other.evaluate(() => JSON.stringify(sessionStorage));
  expect(left).not.toContain(`a secret of ${word}`);
});

test("a key that is revoked ends the page in every tab, whatever it shows", async ({ page, tab, jar, word }) => {
  const session = await said(jar, "red", `Until then, ${word}.`, `So far, ${word}.`);
  const short = await jar.key("red", "member");
  await enter(page, short);
  const tabs = [page, await tab(), await tab()];
  for (const one of tabs) {
    await one.goto(`/sessions/${session}`);
    await expect(one.getByText(`So far, ${word}.`)).toBeVisible();
  }
  await jar.does("keys", "revoke", short.slice(3, 19));
  for (const one of tabs) {
    await expect(one.getByRole("alert")).toContainText("revoked");
    await expect(one.getByText(`So far, ${word}.`)).toHaveCount(0);
  }
});

test("the operator sees what runs of all tenants, and ends only their own", async ({ page, jar, browserOf, word }) => {
  const gate = new Gate();
  const ask = `Take your time, ${word}.`;
  jar.model.play(ask, { say: [gate, `At last, ${word}.`] });
  const turn = jar.api("POST", "/v1/chat", { agent: "general-purpose", text: ask }, { authorization: `Bearer ${keys.blue}` });
  await gate.waited();
  await enter(page, keys.local ?? "");
  await page.goto("/running");
  const rows = page.getByRole("main").getByRole("listitem");
  await expect(page.getByRole("main")).toContainText("Nothing runs");
  await page.getByRole("button", { name: "All tenants" }).click();
  await expect(rows.filter({ hasText: "blue" })).toHaveCount(1);
  await expect(rows.getByRole("button")).toHaveCount(0);
  await expect(rows.getByRole("link")).toHaveCount(0);
  // Nobody else is offered that, not even by its address.
  const red = await browserOf(jar);
  await enter(red, keys.red ?? "");
  await red.goto("/running?all=true");
  await expect(red.getByRole("main")).toContainText("Nothing runs");
  await expect(red.getByRole("button", { name: "All tenants" })).toHaveCount(0);
  gate.open();
  await turn;
  await expect(rows).toHaveCount(0);
});

test("a key that is revoked while its page is open says so and offers a way on", async ({ page, jar }) => {
  const short = await jar.key("red", "member");
  await enter(page, short);
  await jar.does("keys", "revoke", short.slice(3, 19));
  await page.getByRole("link", { name: "usage" }).first().click();
  await expect(page.getByRole("alert")).toContainText("revoked");
  await page.getByLabel("Key", { exact: true }).fill(keys.red ?? "");
  await page.getByRole("button", { name: "log in" }).click();
  await expect(page.getByRole("heading", { level: 1 })).toContainText(/usage/i);
});

test("three tenants see what is their own and nothing of the others", async ({ jar, browserOf, word }) => {
  const sessions: Record<string, string> = {};
  const pages: Record<string, Page> = {};
  for (const tenant of TENANTS) {
    const page = await browserOf(jar);
    pages[tenant] = page;
    await enter(page, keys[tenant] ?? "");
    jar.model.play(`A secret of ${tenant}, ${word}.`, { say: `Kept for ${tenant}, ${word}.` });
    const bearer = { authorization: `Bearer ${keys[tenant]}` };
    const turn = await jar.api("POST", "/v1/chat", { agent: "general-purpose", text: `A secret of ${tenant}, ${word}.` }, bearer);
    sessions[tenant] = turn.json.session;
  }
  for (const tenant of TENANTS) {
    const page = pages[tenant];
    if (!page) throw new Error(tenant);
    await page.goto("/sessions");
    await expect(page.getByText(`A secret of ${tenant}, ${word}.`).first()).toBeVisible();
    for (const other of TENANTS.filter((one) => one !== tenant)) {
      await expect(page.getByText(`A secret of ${other}, ${word}.`)).toHaveCount(0);
      await page.goto(`/sessions/${sessions[other]}`);
      await expect(page.getByRole("main")).toContainText(/gone|deleted|not there/i);
      await expect(page.getByText(`Kept for ${other}`)).toHaveCount(0);
    }
    await page.goto(`/sessions/${sessions[tenant]}`);
    await expect(page.getByText(`Kept for ${tenant}, ${word}.`)).toBeVisible();
  }
});

test("a key that may only look can say nothing and answer nothing", async ({ page, jar, word }) => {
  const looker = await jar.key("blue", "read-only");
  jar.model.play(`Seen by all, ${word}.`, { say: `Yes, ${word}.` });
  const bearer = { authorization: `Bearer ${keys.blue}` };
  const turn = await jar.api("POST", "/v1/chat", { agent: "general-purpose", text: `Seen by all, ${word}.` }, bearer);
  await enter(page, looker);
  await page.goto(`/sessions/${turn.json.session}`);
  await expect(page.getByText(`Yes, ${word}.`)).toBeVisible();
  await expect(page.getByRole("textbox", { name: "message" })).toBeDisabled();
});

test("no barrier on the way in, light and dark, narrow and wide", async ({ page }) => {
  for (const width of [360, 1400]) {
    await page.setViewportSize({ width, height: 900 });
    await page.goto("/agents");
    await expect(page.getByLabel("Key", { exact: true })).toBeVisible();
    await fits(page);
    await accessibleInBoth(page);
  }
});
