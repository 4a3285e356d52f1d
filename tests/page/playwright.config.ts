import { defineConfig } from "@playwright/test";

const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
// A page that a test hands out (kit/dist.ts) comes from no address, and may call none of this machine's.
const handed = process.env.BELLJAR_PAGE ? ["--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets"] : [];

export default defineConfig({
  testDir: "specs",
  outputDir: "out/results",
  // What is waited for has a limit of its own; a test that takes longer waits for what never comes.
  timeout: 90_000,
  expect: { timeout: 20_000 },
  fullyParallel: false,
  // One more than the two cores of the smallest machine that runs this: much of a test is waiting.
  workers: 3,
  forbidOnly: true,
  // A browser on a busy machine may be late; what fails twice fails.
  retries: 1,
  reporter: [["list"]],
  use: {
    browserName: "chromium",
    locale: "en-GB",
    viewport: { width: 1400, height: 900 },
    actionTimeout: 20_000,
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: [...sandbox, ...handed, "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"],
    },
    trace: "off",
    screenshot: "off",
  },
});
