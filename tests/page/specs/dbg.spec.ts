import { at } from "../kit/at.ts";
import * as scenes from "../kit/scenes.ts";
import { expect, test } from "../kit/test.ts";
test.use({ plan: {} });
test("dbg", async ({ page, jar, word }) => {
  const { session } = await jar.chat("teller", scenes.told(jar, word, `Before, ${word}.`));
  page.on("console", (m) => console.log("console", m.text()));
  page.on("websocket", (s) => { console.log("ws", s.url()); s.on("framereceived", (f) => console.log("<", String(f.payload).slice(0, 80))); s.on("framesent", (f) => console.log(">", f.payload)); s.on("socketerror", (e) => console.log("err", e)); s.on("close", () => console.log("closed")); });
  page.on("response", (r) => console.log(r.status(), r.url()));
  await page.goto(`/sessions/${session}`);
  await page.waitForTimeout(3000);
});
