// How the page is served: to whom, with which headers, and by which rules of the API.

import { expect, test } from "../kit/test.ts";

test.use({ plan: {} });

const VIEWS = ["sessions", "agents", "rights", "tools", "usage", "audit", "running", "libraries", "login"];

test("every view's address gives the page, without a key", async ({ jar }) => {
  const root = await jar.api("GET", "/");
  expect(root.status).toBe(200);
  for (const view of VIEWS) {
    for (const path of [`/${view}`, `/${view}/one/two`]) {
      const answer = await jar.api("GET", path, undefined, { accept: "text/html" });
      expect([path, answer.status, answer.text]).toEqual([path, 200, root.text]);
    }
  }
  const nowhere = await jar.api("GET", "/nowhere", undefined, { accept: "text/html" });
  expect([nowhere.status, nowhere.text]).toEqual([404, root.text]);
});

test("an address that is none shows a person the way home", async ({ page }) => {
  await page.goto("/nowhere");
  const main = page.getByRole("main");
  await expect(main).toContainText("There is no such view");
  await main.getByRole("link", { name: "Sessions" }).click();
  await expect(page).toHaveURL(/\/sessions/);
});

test("the page may load nothing that is not its own, and run no text", async ({ jar }) => {
  const { headers, text } = await jar.api("GET", "/");
  const policy = new Map((headers.get("content-security-policy") ?? "").split(";").map((part) => {
    const [name = "", ...words] = part.trim().split(/\s+/);
    return [name, words] as const;
  }));
  expect(policy.get("default-src")).toEqual(["'none'"]);
  expect(policy.get("script-src")).toEqual(["'self'"]);
  expect(policy.get("style-src")).toEqual(["'self'"]);
  expect(policy.get("connect-src")).toEqual(["'self'"]);
  for (const name of ["base-uri", "form-action", "frame-ancestors"]) expect(policy.get(name), name).toEqual(["'none'"]);
  expect(policy.get("require-trusted-types-for")).toEqual(["'script'"]);
  const all = [...policy.values()].flat();
  for (const word of ["'unsafe-inline'", "'unsafe-eval'", "*", "https:", "http:"]) expect(all).not.toContain(word);
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("referrer-policy")).toBe("no-referrer");
  expect(headers.get("cross-origin-opener-policy")).toBe("same-origin");
  expect(headers.get("permissions-policy")).toBeTruthy();
  expect(text).not.toMatch(/<script(?![^>]*\ssrc=)[^>]*>/);
  expect(text).not.toMatch(/<style|\sstyle=|\son\w+=/);
});

test("files of the page are kept for good, and the page itself is asked for anew", async ({ jar }) => {
  const { headers, text } = await jar.api("GET", "/");
  expect(headers.get("cache-control")).toBe("no-cache");
  const files = [...text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map((found) => found[1] ?? "");
  expect(files.length).toBeGreaterThan(0);
  for (const file of files) {
    const answer = await jar.api("GET", file);
    expect([file, answer.status]).toEqual([file, 200]);
    expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
  }
  for (const path of ["/assets/none.js", "/assets/../Cargo.toml", "/assets/%2e%2e/index.html", "/assets/"]) {
    expect([path, (await jar.api("GET", path)).status]).toEqual([path, 404]);
  }
});

test("a first visit takes at most 250 KiB", async ({ page }) => {
  let bytes = 0;
  const session = await page.context().newCDPSession(page);
  await session.send("Network.enable");
  session.on("Network.loadingFinished", (event) => (bytes += event.encodedDataLength));
  await page.goto("/");
  await expect(page.getByRole("main")).toBeVisible();
  await page.waitForLoadState("networkidle");
  console.log(`first visit: ${Math.round(bytes / 1024)} KiB`);
  expect(bytes).toBeGreaterThan(10_000);
  expect(bytes).toBeLessThan(250 * 1024);
});

test("the page says which version it is, and the server says the same", async ({ jar }) => {
  const { text } = await jar.api("GET", "/");
  const own = /<meta name="belljar-page" content="([^"]+)"/.exec(text)?.[1];
  expect(own).toMatch(/^[0-9a-z]{8,}$/);
  const me = await jar.get("/v1/me");
  expect(me).toMatchObject({ tenant: "local", page: own, keys: false });
});

test("a name that is not the server's own gets no page", async ({ jar }) => {
  // `fetch` sets the host itself.
  const { request } = await import("node:http");
  const status = await new Promise<number | undefined>((done, fail) => {
    const asked = request(jar.url, { headers: { host: "evil.invalid" } }, (answer) => {
      answer.resume();
      done(answer.statusCode);
    });
    asked.on("error", fail).end();
  });
  expect(status).toBeGreaterThanOrEqual(400);
});
