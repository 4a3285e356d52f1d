// Files, synchronously: QuickJS has none of its own. Paths are relative to the workspace.

import { getDirectories } from "wasi:filesystem/preopens@0.2.12";

import { denied, failed, notFound, payload, tagOf, tooLarge } from "./errors.js";
import { decode, encode } from "./utf8.js";

const ROOT = "/workspace";
const CHUNK = 64 * 1024;
const FOLLOW = { symlinkFollow: true };

// The directory that a path lies in, and the path below it. A path that leads out is handed on as
// it is: the host refuses it, and its receipt says so.
function resolve(path) {
  if (path.includes("\0")) throw failed("a path cannot hold a NUL character");
  const mounts = getDirectories();
  const full = path.startsWith("/") ? path : `${ROOT}/${path}`;
  let best;
  for (const [directory, root] of mounts) {
    const inside = full === root || full.startsWith(root.endsWith("/") ? root : `${root}/`);
    if (inside && (best === undefined || root.length > best[1].length)) best = [directory, root];
  }
  if (best === undefined) throw notFound(`\`${path}\` does not exist`);
  const parts = full.slice(best[1].length).split("/").filter((part) => part !== "" && part !== ".");
  return [best[0], parts.join("/") || "."];
}

function explain(thrown, path) {
  const code = tagOf(payload(thrown));
  switch (code) {
    case "no-entry":
      return notFound(`\`${path}\` does not exist`);
    case "access":
    case "not-permitted":
      return denied(`access to \`${path}\` was refused`);
    case "read-only":
      return denied(`\`${path}\` is in a read-only mount`);
    case "quota":
    case "file-too-large":
    case "insufficient-space":
      return tooLarge(`\`${path}\`: the limit on written bytes is reached`);
    default:
      return thrown instanceof Error && thrown.name === "ToolError"
        ? thrown
        : failed(`\`${path}\`: ${code.replaceAll("-", " ")}`);
  }
}

function at(path, work) {
  try {
    return work(...resolve(path));
  } catch (thrown) {
    throw explain(thrown, path);
  }
}

function open(path, openFlags, flags) {
  return at(path, (directory, below) => directory.openAt(FOLLOW, below, openFlags, flags));
}

// Gives back what the host holds for a handle; without it that waits for the collector.
function close(handle) {
  handle[Symbol.dispose]?.();
}

function writeAll(path, bytes, openFlags, offset) {
  const file = open(path, openFlags, { write: true });
  try {
    let position = offset === "end" ? Number(file.stat().size) : 0;
    for (let begin = 0; begin < bytes.length; ) {
      const written = Number(file.write(bytes.subarray(begin, begin + CHUNK), position));
      begin += written;
      position += written;
    }
  } catch (thrown) {
    throw explain(thrown, path);
  } finally {
    close(file);
  }
}

const bytesOf = (content) => (typeof content === "string" ? encode(content) : content);

export const files = {
  readBytes(path) {
    const file = open(path, {}, { read: true });
    try {
      const chunks = [];
      let size = 0;
      for (;;) {
        const [chunk, isEnd] = file.read(CHUNK, size);
        chunks.push(chunk);
        size += chunk.length;
        if (isEnd || chunk.length === 0) break;
      }
      const whole = new Uint8Array(size);
      let begin = 0;
      for (const chunk of chunks) {
        whole.set(chunk, begin);
        begin += chunk.length;
      }
      return whole;
    } catch (thrown) {
      throw explain(thrown, path);
    } finally {
      close(file);
    }
  },

  read(path) {
    const bytes = files.readBytes(path);
    try {
      return decode(bytes, true);
    } catch {
      throw failed(`\`${path}\`: is not valid UTF-8 text`);
    }
  },

  write(path, content) {
    writeAll(path, bytesOf(content), { create: true, truncate: true }, 0);
  },

  append(path, content) {
    writeAll(path, bytesOf(content), { create: true }, "end");
  },

  list(path = ".") {
    const directory = open(path, { directory: true }, { read: true });
    try {
      const names = [];
      const entries = directory.readDirectory();
      for (let entry = entries.readDirectoryEntry(); entry; entry = entries.readDirectoryEntry())
        names.push({ name: entry.name, isDirectory: tagOf(entry.type) === "directory" });
      close(entries);
      return names.sort((a, b) => (a.name < b.name ? -1 : 1));
    } catch (thrown) {
      throw explain(thrown, path);
    } finally {
      close(directory);
    }
  },

  exists(path) {
    try {
      at(path, (directory, below) => directory.statAt(FOLLOW, below));
      return true;
    } catch (error) {
      if (error.kind === "not-found") return false;
      throw error;
    }
  },

  makeDirectory(path) {
    at(path, (directory, below) => directory.createDirectoryAt(below));
  },

  rename(from, to) {
    const [target, belowTarget] = resolve(to);
    at(from, (directory, below) => directory.renameAt(below, target, belowTarget));
  },

  remove(path) {
    at(path, (directory, below) => directory.unlinkFileAt(below));
  },
};
