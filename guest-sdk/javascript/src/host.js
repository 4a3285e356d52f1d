// What the host offers to every tool.

import { log as write } from "belljar:tool/log@0.2.0";
import { report } from "belljar:tool/progress@0.2.0";
import { get } from "wasi:config/store@0.2.0-rc.1";
import { getRandomBytes } from "wasi:random/random@0.2.12";

const at = (level) => (message) => write(level, String(message));

export const log = {
  trace: at("trace"),
  debug: at("debug"),
  info: at("info"),
  warn: at("warn"),
  error: at("error"),
};

export function progress(done, total, message = "") {
  report(done, total, message);
}

export function config(key) {
  return get(key) ?? undefined;
}

export function secretExists(name) {
  return config(`secret.${name}`) !== undefined;
}

export function randomBytes(count) {
  return Uint8Array.from(getRandomBytes(count));
}
