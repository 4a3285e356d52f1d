// The page's files from a directory, in the place of those in the program: while the page is worked on,
// `BELLJAR_PAGE=…/dist` tries what Vite has just built without a build of belljar.

import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import type { BrowserContext } from "@playwright/test";

const DIST = process.env.BELLJAR_PAGE;

const TYPES: Record<string, string> = { ".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".svg": "image/svg+xml" };

export async function serveDist(context: BrowserContext, origin: string): Promise<void> {
  if (!DIST) return;
  const shell = await fetch(origin);
  const digest = /name="belljar-page" content="([^"]+)"/.exec(await shell.text())?.[1] ?? "";
  const headers = Object.fromEntries(["content-security-policy", "cross-origin-opener-policy", "permissions-policy"].map((name) => [name, shell.headers.get(name) ?? ""]));
  await context.route((url) => url.origin === new URL(origin).origin && !url.pathname.startsWith("/v1/"), async (route) => {
    const { pathname } = new URL(route.request().url());
    const name = pathname.startsWith("/assets/") ? pathname.slice(1) : "index.html";
    const text = await readFile(join(DIST, name), "utf8").catch(() => undefined);
    if (text === undefined) return route.fulfill({ status: 404 });
    const body = text.replace('name="belljar-page" content="development"', `name="belljar-page" content="${digest}"`);
    await route.fulfill({ body, headers: { ...headers, "content-type": TYPES[extname(name)] ?? "text/plain" } });
  });
}
