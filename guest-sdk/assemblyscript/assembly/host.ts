// What the host offers to every tool.

import { lastLength, lendText, slot, takeBytes, takeText } from "./memory";

@external("belljar:tool/log@0.2.0", "log")
declare function importLog(level: i32, text: usize, length: usize): void;
@external("belljar:tool/progress@0.2.0", "report")
declare function importReport(done: u64, has: i32, total: u64, text: usize, length: usize): void;
@external("wasi:config/store@0.2.0-rc.1", "get")
declare function importConfig(key: usize, length: usize, into: usize): void;
@external("wasi:random/random@0.2.12", "get-random-bytes")
declare function importRandom(count: u64, into: usize): void;
@external("wasi:clocks/wall-clock@0.2.12", "now")
declare function importWall(into: usize): void;
@external("wasi:clocks/monotonic-clock@0.2.12", "now")
declare function importMonotonic(): u64;
@external("wasi:cli/stdout@0.2.12", "get-stdout")
declare function importStdout(): i32;
@external("wasi:cli/stderr@0.2.12", "get-stderr")
declare function importStderr(): i32;
@external("wasi:cli/environment@0.2.12", "get-environment")
declare function importEnvironment(into: usize): void;
@external("wasi:io/streams@0.2.12", "[method]output-stream.blocking-write-and-flush")
declare function importWrite(stream: i32, data: usize, length: usize, into: usize): void;

export enum Level { Trace, Debug, Info, Warn, Error }

// A line for the operator's log. Never shown to the model; the host keeps a bounded number.
export function log(level: Level, message: string): void {
  const text = lendText(message);
  importLog(level, text, lastLength);
}

// How far a long call has come, both numbers in the same unit; a total of 0 is not known. Display only.
export function progress(done: u64, total: u64, message: string = ""): void {
  const text = lendText(message);
  importReport(done, total != 0 ? 1 : 0, total, text, lastLength);
}

// What the operator set for this tool, or null. `tool.toml` names the keys.
export function config(key: string): string | null {
  const text = lendText(key);
  importConfig(text, lastLength, slot);
  if (load<u8>(slot) != 0 || load<u8>(slot, 4) == 0) return null;
  return takeText(slot + 8);
}

// Whether the operator granted this tool a secret of this name. Its value is never seen here.
export function secretExists(name: string): bool {
  return config("secret." + name) !== null;
}

// Random bytes, at most 65,536.
export function randomBytes(count: i32): Uint8Array {
  importRandom(count, slot);
  return takeBytes(slot);
}

// Milliseconds since 1970.
export function wallMilliseconds(): i64 {
  importWall(slot);
  return load<i64>(slot) * 1000 + load<u32>(slot, 8) / 1000000;
}

// Nanoseconds of a clock that never goes back.
export function monotonicNanoseconds(): u64 {
  return importMonotonic();
}

// How many environment variables there are.
export function environmentSize(): i32 {
  importEnvironment(slot);
  return load<i32>(slot, 4);
}

const CHUNK: usize = 4096;

function write(stream: i32, message: string): void {
  const text = lendText(message + "\n"), length = lastLength;
  for (let at: usize = 0; at < length; at += CHUNK) {
    importWrite(stream, text + at, min(length - at, CHUNK), slot);
    if (load<u8>(slot) != 0) return;
  }
}

let stdout: i32 = -1;
let stderr: i32 = -1;

// A line on the author's streams.
export function print(message: string): void {
  if (stdout < 0) stdout = importStdout();
  write(stdout, message);
}

export function printError(message: string): void {
  if (stderr < 0) stderr = importStderr();
  write(stderr, message);
}

// The end of the instance, for asc's `--use abort=...`.
export function ended(message: string | null, file: string | null, line: u32, column: u32): void {
  printError((message === null ? "aborted" : message) + " (" + (file === null ? "" : file) + ":" + line.toString() + ")");
  unreachable();
}
