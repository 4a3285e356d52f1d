// The tests' own `test`: a server for each file (a file that says `test.use` has a worker of its own), and a page that is guarded.

import { AxeBuilder } from "@axe-core/playwright";
import { test as base, expect, type BrowserContext, type Page } from "@playwright/test";
import { serveDist } from "./dist.ts";
import { Guard } from "./guard.ts";
import { Jar, type Plan } from "./jar.ts";

export { expect, type Page };
export { Gate } from "./model.ts";

interface Each {
  guard: Guard;
  /** Another tab of the same person. */
  tab: () => Promise<Page>;
  /** Somebody else's browser, guarded too. */
  browserOf: (jar: Jar) => Promise<Page>;
  /** A word that is in no other test's texts. */
  word: string;
}

interface Shared {
  plan: Plan;
  jar: Jar;
}

export const test = base.extend<Each, Shared>({
  plan: [{}, { option: true, scope: "worker" }],
  jar: [
    async ({ plan }, use) => {
      const jar = await Jar.start(plan);
      await use(jar);
      await jar.stop();
    },
    { scope: "worker", timeout: 120_000 },
  ],
  baseURL: async ({ jar }, use) => use(jar.url),
  guard: [
    async ({ context, jar }, use, info) => {
      const guard = await Guard.over(context, jar.url);
      await serveDist(context, jar.url);
      await use(guard);
      if (info.status === "passed") expect(guard.breaches).toEqual([]);
      else for (const breach of guard.breaches) console.log(breach);
    },
    { auto: true },
  ],
  tab: async ({ context, guard }, use) => {
    expect(guard).toBeTruthy();
    await use(() => context.newPage());
  },
  browserOf: async ({ browser, contextOptions, viewport, locale }, use) => {
    const made: [BrowserContext, Guard][] = [];
    await use(async (jar) => {
      const context = await browser.newContext({ ...contextOptions, viewport, locale, baseURL: jar.url });
      made.push([context, await Guard.over(context, jar.url)]);
      await serveDist(context, jar.url);
      return context.newPage();
    });
    for (const [context, guard] of made) {
      expect(guard.breaches).toEqual([]);
      await context.close();
    }
  },
  word: async ({}, use, info) => use(`w${info.testId.slice(-6)}${info.retry}`),
});

/** That axe finds nothing wrong with what is shown. */
export async function accessible(page: Page, rules?: string[]): Promise<void> {
  // Nobody reads what passes, and the page has no frames.
  const axe = new AxeBuilder({ page }).options({ resultTypes: ["violations"], iframes: false });
  const { violations } = await (rules ? axe.withRules(rules) : axe).analyze();
  const found = violations.map(({ id, help, nodes }) => ({
    id,
    help,
    at: nodes.slice(0, 5).map((node) => `${node.target.join(" ")}: ${node.html.slice(0, 200)}: ${node.failureSummary ?? ""}`),
  }));
  expect.soft(found).toEqual([]);
}

/** The same in both themes. What the second one changes is colours, so that is what is looked at there. */
export async function accessibleInBoth(page: Page): Promise<void> {
  await page.emulateMedia({ colorScheme: "light" });
  await accessible(page);
  await page.emulateMedia({ colorScheme: "dark" });
  await accessible(page, ["color-contrast", "link-in-text-block"]);
}

/** That nothing is wider than the window, and the page itself does not scroll sideways. */
export async function fits(page: Page): Promise<void> {
  const wide = await page.evaluate(() => {
    const root = document.scrollingElement ?? document.documentElement;
    const over = Math.max(root.scrollWidth, document.body.scrollWidth) - window.innerWidth;
    if (over <= 0) return [];
    const found = [...document.querySelectorAll("body *")].filter(
      (one) => one.getBoundingClientRect().right > window.innerWidth + 1,
    );
    const names = found.slice(0, 5).map((one) => `${one.tagName} .${one.className} ${(one.textContent ?? "").slice(0, 60)}`);
    return [`${over} px too wide`, ...names];
  });
  expect.soft(wide).toEqual([]);
}

/** That no text of anybody's has run as a script. */
export async function unharmed(page: Page): Promise<void> {
  expect(await page.evaluate(() => window.pwned ?? null)).toBeNull();
  expect(await page.evaluate(() => window.__violations ?? [])).toEqual([]);
}
