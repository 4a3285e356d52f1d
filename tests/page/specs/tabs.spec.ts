// Many tabs of one browser, which opens six connections to a server and no more.

import { at } from "../kit/at.ts";
import * as scenes from "../kit/scenes.ts";
import { expect, type Page, test } from "../kit/test.ts";

test.use({ plan: {} });

const TABS = 12;

test("twelve tabs of one browser are all live, and each of them can ask for more", async ({ page, tab, jar, word }) => {
  const { ask, gate } = scenes.slow(jar, word);
  const session = await jar.begin("teller", ask);
  await gate.waited();
  const tabs: Page[] = [page];
  while (tabs.length < TABS) tabs.push(await tab());
  for (const one of tabs) {
    await one.goto(`/sessions/${session}`);
    await expect(at(one).conversation()).toContainText(`The first half of ${word}`);
  }
  gate.open();
  for (const one of tabs) await expect(at(one).conversation()).toContainText(`the second half of ${word}.`);
  // All of them together still get answers.
  await Promise.all(tabs.map(async (one) => {
    await one.getByRole("navigation", { name: "views" }).getByRole("link", { name: "tools" }).click();
    await expect(one.getByRole("main")).toContainText("file_read");
  }));
});

test("a tab that was away goes on behind what it saw last", async ({ page, jar, guard, word }) => {
  guard.expect(/ERR_INTERNET_DISCONNECTED/);
  const { session } = await jar.chat("teller", scenes.told(jar, word, `Before, ${word}.`));
  const asked: string[] = [];
  const heard: string[] = [];
  page.on("websocket", (socket) => {
    socket.on("framesent", ({ payload }) => asked.push(String(payload)));
    socket.on("framereceived", ({ payload }) => heard.push(String(payload)));
  });
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText(`Before, ${word}.`);
  await expect.poll(() => heard.some((text) => text.includes('"run_finished"'))).toBe(true);
  await jar.terminate();
  await expect(at(page).connection()).toBeVisible();
  await jar.serve();
  await expect(at(page).connection()).toHaveCount(0);
  const places = () => asked.filter((text) => text.includes("subscribe")).map((text) => JSON.parse(text).after as number);
  const { length } = (await jar.api("GET", `/v1/sessions/${session}/events?follow=false&after=0`)).text.trim().split("\n\n");
  await expect.poll(places).toEqual([0, length]);
});

test("where nothing lets a WebSocket through, events come as a stream", async ({ page, jar, word }) => {
  await page.routeWebSocket("**/v1/ws", (socket) => socket.close({ code: 1011 }));
  const { ask, gate } = scenes.slow(jar, word);
  const session = await jar.begin("teller", ask);
  await gate.waited();
  await page.goto(`/sessions/${session}`);
  await expect(at(page).conversation()).toContainText(`The first half of ${word}`);
  gate.open();
  await expect(at(page).conversation()).toContainText(`the second half of ${word}.`);
});
