// What the page takes, in numbers: `npm run measure`. No number decides anything; a measure fails only where
// the page does not do what is measured.

import { defineConfig } from "@playwright/test";
import tests from "./playwright.config.ts";

export default defineConfig({
  ...tests,
  testDir: "measure",
  testMatch: "*.measure.ts",
  timeout: 600_000,
  workers: 1,
  retries: 0,
});
