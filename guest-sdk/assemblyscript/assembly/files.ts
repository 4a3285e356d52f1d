// Files. Paths are relative to the workspace. What fails gives null or false, and `files.error()` says why,
// as a tool can answer it.

import { lastLength, lendText, slot, takeBytes, takeText } from "./memory";
import { Output } from "./output";

@external("wasi:filesystem/preopens@0.2.12", "get-directories")
declare function importDirectories(into: usize): void;
@external("wasi:filesystem/types@0.2.12", "[method]descriptor.open-at")
declare function importOpen(self: i32, follow: i32, path: usize, length: usize, how: i32, flags: i32, into: usize): void;
@external("wasi:filesystem/types@0.2.12", "[method]descriptor.read")
declare function importRead(self: i32, length: u64, offset: u64, into: usize): void;
@external("wasi:filesystem/types@0.2.12", "[method]descriptor.write")
declare function importWrite(self: i32, data: usize, length: usize, offset: u64, into: usize): void;
@external("wasi:filesystem/types@0.2.12", "[method]descriptor.stat")
declare function importStat(self: i32, into: usize): void;
@external("wasi:filesystem/types@0.2.12", "[method]descriptor.read-directory")
declare function importReadDirectory(self: i32, into: usize): void;
@external("wasi:filesystem/types@0.2.12", "[method]directory-entry-stream.read-directory-entry")
declare function importEntry(self: i32, into: usize): void;
@external("wasi:filesystem/types@0.2.12", "[method]descriptor.create-directory-at")
declare function importCreateDirectory(self: i32, path: usize, length: usize, into: usize): void;
@external("wasi:filesystem/types@0.2.12", "[method]descriptor.rename-at")
declare function importRename(self: i32, path: usize, length: usize, to: i32, toPath: usize, toLength: usize, into: usize): void;
@external("wasi:filesystem/types@0.2.12", "[method]descriptor.unlink-file-at")
declare function importUnlink(self: i32, path: usize, length: usize, into: usize): void;
@external("wasi:filesystem/types@0.2.12", "[resource-drop]descriptor")
declare function dropDescriptor(self: i32): void;
@external("wasi:filesystem/types@0.2.12", "[resource-drop]directory-entry-stream")
declare function dropEntries(self: i32): void;

const ROOT: string = "/workspace";
const FOLLOW: i32 = 1, CREATE: i32 = 1, DIRECTORY: i32 = 2, TRUNCATE: i32 = 8, READ: i32 = 1, WRITE: i32 = 2;
const CHUNK: u64 = 65536;

// The first of the error codes of wasi:filesystem that mean something to a model.
const ACCESS: i32 = 0, QUOTA: i32 = 6, FILE_TOO_LARGE: i32 = 8, NO_ENTRY: i32 = 20;
const INSUFFICIENT_SPACE: i32 = 23, NOT_PERMITTED: i32 = 31, READ_ONLY: i32 = 33;

let failure: Output | null = null;

// The workspace's handle, from the first use on; -1 = there is none.
let workspace: i32 = -2;

function root(): i32 {
  if (workspace != -2) return workspace;
  workspace = -1;
  importDirectories(slot);
  const list = load<usize>(slot), count = load<usize>(slot, 4);
  for (let at: usize = 0; at < count; at++) {
    const directory = load<i32>(list + at * 12), name = takeText(list + at * 12 + 4);
    if (name == ROOT && workspace < 0) workspace = directory;
    else dropDescriptor(directory);
  }
  if (count > 0) heap.free(list);
  return workspace;
}

// Notes why; `code` is one of wasi:filesystem, or -1 where there is no workspace.
function refuse(path: string, code: i32): void {
  const shown = "`" + path + "`";
  switch (code) {
    case -1:
    case NO_ENTRY: failure = Output.notFound(shown + " does not exist"); break;
    case ACCESS:
    case NOT_PERMITTED: failure = Output.denied("access to " + shown + " was refused"); break;
    case READ_ONLY: failure = Output.denied(shown + " is in a read-only mount"); break;
    case QUOTA:
    case FILE_TOO_LARGE:
    case INSUFFICIENT_SPACE: failure = Output.tooLarge(shown + ": the limit on written bytes is reached"); break;
    default: failure = Output.failed(shown + ": error " + code.toString() + " of wasi:filesystem");
  }
}

// The path below the workspace. One that leads out is handed on: the host refuses it, and its receipt says so.
function below(path: string): string {
  if (path == ROOT) return ".";
  return path.startsWith(ROOT + "/") ? path.substring(ROOT.length + 1) : path;
}

// A handle; -1 = it failed.
function open(path: string, how: i32, flags: i32): i32 {
  const directory = root();
  if (directory < 0) {
    refuse(path, -1);
    return -1;
  }
  const text = lendText(below(path));
  importOpen(directory, FOLLOW, text, lastLength, how, flags, slot);
  if (load<u8>(slot) == 0) return load<i32>(slot, 4);
  refuse(path, load<u8>(slot, 4));
  return -1;
}

// The result of a function without a value: whether it worked.
function done(path: string): bool {
  if (load<u8>(slot) == 0) return true;
  refuse(path, load<u8>(slot, 1));
  return false;
}

function put(path: string, content: Uint8Array, how: i32, atEnd: bool): bool {
  const file = open(path, how, WRITE);
  if (file < 0) return false;
  let position: u64 = 0;
  if (atEnd) {
    importStat(file, slot);
    if (load<u8>(slot) == 0) position = load<u64>(slot, 24);
  }
  let worked = true;
  for (let begin = 0; begin < content.length && worked; ) {
    const length = min(content.length - begin, <i32>CHUNK);
    importWrite(file, content.dataStart + begin, length, position, slot);
    worked = load<u8>(slot) == 0;
    if (worked) {
      const written = load<u64>(slot, 8);
      begin += <i32>written;
      position += written;
    } else {
      refuse(path, load<u8>(slot, 8));
    }
  }
  dropDescriptor(file);
  return worked;
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.wrap(String.UTF8.encode(text));
}

export namespace files {
  // Why the last of these failed.
  export function error(): Output {
    return failure === null ? Output.failed("nothing failed") : failure!;
  }

  export function readBytes(path: string): Uint8Array | null {
    const file = open(path, 0, READ);
    if (file < 0) return null;
    const chunks: Uint8Array[] = [];
    let size = 0, worked = true;
    for (;;) {
      importRead(file, CHUNK, size, slot);
      worked = load<u8>(slot) == 0;
      if (!worked) {
        refuse(path, load<u8>(slot, 4));
        break;
      }
      const last = load<u8>(slot, 12) != 0, chunk = takeBytes(slot + 4);
      chunks.push(chunk);
      size += chunk.length;
      if (last || chunk.length == 0) break;
    }
    dropDescriptor(file);
    if (!worked) return null;
    const whole = new Uint8Array(size);
    for (let at = 0, begin = 0; at < chunks.length; begin += chunks[at++].length) whole.set(chunks[at], begin);
    return whole;
  }

  // A file's text, as UTF-8.
  export function read(path: string): string | null {
    const bytes = readBytes(path);
    return bytes === null ? null : String.UTF8.decode(bytes.buffer);
  }

  // Makes or replaces a file.
  export function write(path: string, content: string): bool { return put(path, bytesOf(content), CREATE | TRUNCATE, false); }
  export function writeBytes(path: string, content: Uint8Array): bool { return put(path, content, CREATE | TRUNCATE, false); }
  // Writes at a file's end.
  export function append(path: string, content: string): bool { return put(path, bytesOf(content), CREATE, true); }

  // The names in a directory, in no order.
  export function list(path: string = "."): string[] | null {
    const directory = open(path, DIRECTORY, READ);
    if (directory < 0) return null;
    importReadDirectory(directory, slot);
    if (load<u8>(slot) != 0) {
      refuse(path, load<u8>(slot, 4));
      dropDescriptor(directory);
      return null;
    }
    const entries = load<i32>(slot, 4), names: string[] = [];
    for (;;) {
      importEntry(entries, slot);
      if (load<u8>(slot) != 0 || load<u8>(slot, 4) == 0) break;
      names.push(takeText(slot + 12));
    }
    dropEntries(entries);
    dropDescriptor(directory);
    return names;
  }

  export function makeDirectory(path: string): bool {
    const directory = root(), text = lendText(below(path));
    if (directory < 0) {
      refuse(path, -1);
      return false;
    }
    importCreateDirectory(directory, text, lastLength, slot);
    return done(path);
  }

  export function rename(from: string, to: string): bool {
    const directory = root(), source = lendText(below(from)), length = lastLength;
    if (directory < 0) {
      refuse(from, -1);
      return false;
    }
    const target = lendText(below(to));
    importRename(directory, source, length, directory, target, lastLength, slot);
    return done(from);
  }

  export function remove(path: string): bool {
    const directory = root(), text = lendText(below(path));
    if (directory < 0) {
      refuse(path, -1);
      return false;
    }
    importUnlink(directory, text, lastLength, slot);
    return done(path);
  }
}
