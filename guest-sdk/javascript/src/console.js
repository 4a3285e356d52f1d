// `console`, which QuickJS lacks: to the standard streams, which the host keeps for the author.

import { getStderr } from "wasi:cli/stderr@0.2.12";
import { getStdout } from "wasi:cli/stdout@0.2.12";

import { encode } from "./utf8.js";

const CHUNK = 4096;

function shown(value) {
  if (typeof value === "string") return value;
  if (value instanceof Error) return `${value}\n${value.stack ?? ""}`;
  return JSON.stringify(value) ?? String(value);
}

const to = (stream) => (...values) => {
  const bytes = encode(`${values.map(shown).join(" ")}\n`);
  const out = stream();
  for (let at = 0; at < bytes.length; at += CHUNK)
    out.blockingWriteAndFlush(bytes.subarray(at, at + CHUNK));
  out[Symbol.dispose]?.();
};

globalThis.console ??= {
  log: to(getStdout),
  info: to(getStdout),
  debug: to(getStdout),
  warn: to(getStderr),
  error: to(getStderr),
};
