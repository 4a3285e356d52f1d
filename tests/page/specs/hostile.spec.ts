// Texts of models, agent files, tools and peers that try to be more than texts, everywhere a text is shown.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { at } from "../kit/at.ts";
import { asFileName, HOSTILE, short } from "../kit/hostile.ts";
import { expect, fits, type Page, test, unharmed } from "../kit/test.ts";

test.use({ plan: {} });

/** Whether somebody says something with it. */
const words = (text: string): boolean => /[^\s\u0085]/.test(text);

/** Looks at a page at both ends of what screens there are, and pokes at what a text may have made. */
async function harmless(page: Page): Promise<void> {
  for (const width of [360, 1400]) {
    await page.setViewportSize({ width, height: 900 });
    await page.mouse.move(width / 2, 400);
    await fits(page);
  }
  for (const name of ["script:not([src])", "iframe", "object", "embed", "base[href]", "form[action]", "meta[http-equiv=refresh]"])
    expect([name, await page.locator(name).count()]).toEqual([name, 0]);
  const styles = await page.evaluate(() => [...document.querySelectorAll<HTMLLinkElement>("link[rel=stylesheet]")].map((one) => one.href));
  for (const style of styles) expect(new URL(style).pathname).toMatch(/^\/assets\/[\w.-]+\.css$/);
  const wrong = await page.evaluate(() =>
    [...document.querySelectorAll("*")].flatMap((one) =>
      [...one.attributes].filter(
        ({ name, value }) =>
          /^on/i.test(name) || (/^(href|src|xlink:href|action|formaction|data|srcset|ping)$/i.test(name) && /^[\s\x00-\x1f]*(javascript|vbscript|data:text|file):/i.test(value)),
      ).map(({ name, value }) => `${one.tagName} ${name}=${value.slice(0, 80)}`),
    ),
  );
  expect(wrong).toEqual([]);
  await unharmed(page);
}

test("there are more than 100 hostile texts, each of them once", () => {
  expect(new Set(HOSTILE).size).toBe(HOSTILE.length);
  expect(HOSTILE.length).toBeGreaterThanOrEqual(100);
});

test("as answers of agents", async ({ page, jar, word }) => {
  test.setTimeout(180_000);
  let session: string | undefined;
  for (const [index, text] of HOSTILE.entries()) {
    const ask = `Say number ${index} of ${word}.`;
    jar.model.play(ask, { say: `Number ${index}:\n\n${text}\n\nEnd of ${index}.` });
    session = (await jar.chat("teller", ask, session)).session;
    if (index % 20 !== 19 && index !== HOSTILE.length - 1) continue;
    await page.goto(`/sessions/${session}`);
    await expect(at(page).conversation()).toContainText(`End of ${index}.`);
    await harmless(page);
    session = undefined;
  }
});

test("as answers that are streamed letter by letter", async ({ page, jar, word }) => {
  await page.goto("/sessions/new");
  const texts = short(120).slice(0, 40);
  const ask = `Say them slowly, ${word}.`;
  jar.model.play(ask, { say: texts.flatMap((text) => [...`${text}\n\n`]).concat(`End of ${word}.`) });
  await at(page).begin("teller", ask);
  await expect(at(page).conversation()).toContainText(`End of ${word}.`);
  await harmless(page);
});

test("as words of a person and titles of sessions", async ({ page, jar }) => {
  for (const text of short(4_000).filter(words)) await jar.chat("teller", text);
  await page.goto("/sessions");
  await expect(at(page).sessions().first()).toBeVisible();
  await harmless(page);
  for (let press = 0; press < 10; press += 1) {
    await at(page).sessions().last().scrollIntoViewIfNeeded();
    await unharmed(page);
  }
  await fits(page);
});

test("as goals, contexts, conclusions and errors of subagents", async ({ page, jar, word }) => {
  test.setTimeout(180_000);
  const texts = short(4_000).filter(words);
  const ask = `Hand them out, ${word}.`;
  const tasks = texts.map((text, index) => {
    const task = `${index} ${text}`.trim();
    jar.model.play(task, index % 5 === 0 ? { fail: 400 } : { say: text });
    return { agent: "scout", task, context: text };
  });
  jar.model.play(ask, { calls: [{ name: "delegate_parallel", arguments: { tasks } }] }, { say: `All of ${word}.` });
  const { session } = await jar.chat("keeper", ask);
  await page.goto(`/sessions/${session}`);
  await expect(at(page).head()).toContainText(`${tasks.length} of ${tasks.length} done`);
  await at(page).unfold();
  await harmless(page);
  await page.setViewportSize({ width: 1400, height: 900 });
  await at(page).rows().nth(1).getByRole("link").first().click();
  await expect(at(page).child()).toBeVisible();
  await harmless(page);
});

test("as arguments, errors and refusals of tool calls", async ({ page, jar, word }) => {
  const ask = `Read them, ${word}.`;
  const texts = short(2_000);
  const calls = texts.map((text) => ({ name: "file_read", arguments: { path: text } }));
  const steps = [];
  for (let from = 0; from < calls.length; from += 30) steps.push({ calls: calls.slice(from, from + 30) });
  steps.push({ calls: short(60).map((text) => ({ name: text, arguments: text })) });
  jar.model.play(ask, ...steps, { say: `Read, ${word}.` });
  const { session } = await jar.chat("keeper", ask);
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText(`Read, ${word}.`);
  await harmless(page);
  await page.setViewportSize({ width: 1400, height: 900 });
  await at(page).calls().nth(2).click();
  await harmless(page);
});

test("as questions, options and arguments that a person is to allow", async ({ page, jar, word }) => {
  for (const [index, text] of short(300).filter(words).slice(0, 24).entries()) {
    const ask = `Wonder, ${word}.`;
    jar.model.play(ask, { calls: [{ name: "clarify", arguments: { question: `${text} ?`, options: [text, "harmless"] } }] }, { say: `Over, ${word}.` });
    const session = await jar.begin("keeper", ask);
    await page.goto(`/sessions/${session}`);
    await expect(at(page).question()).toBeVisible();
    await unharmed(page);
    if (index % 6 === 0) await at(page).question().getByRole("button", { name: "harmless" }).last().click();
    else await jar.post(`/v1/sessions/${session}/questions/1`, { text: "harmless" });
    await expect(at(page).conversation()).toContainText(`Over, ${word}.`);
  }
  const ask = `Write it, ${word}.`;
  jar.model.play(ask, { calls: [{ name: "file_write", arguments: { path: `x-${word}.md`, content: HOSTILE.filter((text) => text.length < 5_000).join("\n") } }] }, { say: `Over, ${word}.` });
  const session = await jar.begin("asker", ask);
  await page.goto(`/sessions/${session}`);
  await expect(at(page).question()).toContainText(`x-${word}.md`);
  // The buttons are in reach however much is to be shown.
  for (const name of [/once/i, /^no/i]) await expect(at(page).question().getByRole("button", { name })).toBeVisible();
  await harmless(page);
  await page.setViewportSize({ width: 1400, height: 900 });
  await at(page).question().getByRole("button", { name: /^no/i }).click();
});

test("as names and lines of changed files", async ({ page, jar, word }) => {
  const ask = `Write them all, ${word}.`;
  const names = short(300).map((text, index) => asFileName(text, index));
  const write = (path: string, content: string) => ({ name: "file_write", arguments: { path, content } });
  const calls = names.map((name, index) => write(name, `${short(300)[index]}\n`));
  const steps = [];
  for (let from = 0; from < calls.length; from += 30) steps.push({ calls: calls.slice(from, from + 30) });
  const all = HOSTILE.filter((text) => text.length < 100_000).join("\n");
  jar.model.play(ask, ...steps, { calls: [write(`all-${word}.txt`, all)] }, { say: `Written, ${word}.` });
  const { session } = await jar.chat("writer", ask);
  await jar.changes(session);
  await page.goto(`/sessions/${session}/changes`);
  await expect(at(page).files().first()).toBeVisible();
  await harmless(page);
  await page.setViewportSize({ width: 1400, height: 900 });
  await page.getByRole("button", { name: "Show more" }).last().click();
  await at(page).files().filter({ hasText: `all-${word}.txt` }).getByRole("button").first().click();
  await harmless(page);
});

test("as names, descriptions and prompts of agents", async ({ page, jar }) => {
  const texts = short(3_000);
  for (const [index, text] of texts.entries()) {
    const body = `---\nname: ${JSON.stringify(text.slice(0, 60))}\ndescription: ${JSON.stringify(text)}\ntools: []\nvisibility: user-facing\n---\n${text}\n`;
    await jar.homeFile(`agents/hostile-${index}.md`, body);
  }
  await writeFile(join(jar.home, "agents", asFileName("<img src=x onerror=window.pwned=1>", 1) + ".md"), "---\nname: odd\ndescription: odd\ntools: []\n---\nodd\n");
  await page.goto("/agents");
  await expect(page.getByRole("main")).toContainText("keeper");
  await harmless(page);
  for (const path of ["/rights", "/tools", "/"]) {
    await page.goto(path);
    await expect(page.getByRole("main")).toBeVisible();
    await harmless(page);
  }
  const usable = await jar.get("/v1/agents");
  const first = usable.agents.find((one: { slug: string }) => one.slug.startsWith("hostile-"));
  await page.goto(`/agents/home/${first.slug}`);
  await expect(page.getByRole("main")).toContainText(first.slug);
  await harmless(page);
});

test("as parts of the address", async ({ page }) => {
  await page.goto("/");
  for (const [index, text] of short(200).filter(words).entries()) {
    const view = index % 2 === 0 ? "sessions" : "agents/home";
    const path = `/${view}/${encodeURIComponent(text)}`;
    // Some as the first address of a page, the others by a link in it.
    if (index % 12 < 2) {
      await page.goto(path).catch((error: Error) => {
        // What a browser or a server does not take is shown nowhere.
        if (!/ERR_|Invalid url/i.test(error.message)) throw error;
      });
      await unharmed(page);
      continue;
    }
    const shown = await page.evaluate(async (href) => {
      const link = document.body.appendChild(document.createElement("a"));
      link.setAttribute("href", href);
      link.click();
      link.remove();
      for (let frame = 0; frame < 3; frame += 1) await new Promise(requestAnimationFrame);
      return { there: document.querySelector("main") !== null, pwned: window.pwned ?? null, violations: window.__violations ?? [] };
    }, path);
    expect(shown).toEqual({ there: true, pwned: null, violations: [] });
  }
  await page.goto(`/login?next=${encodeURIComponent("//evil.invalid")}`);
  await expect(page.getByRole("main")).toBeVisible();
  await page.goto(`/login?next=${encodeURIComponent("javascript:window.pwned=1")}#once=x`);
  await expect(page.getByRole("main")).toBeVisible();
  await unharmed(page);
});
