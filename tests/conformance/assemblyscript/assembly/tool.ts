// The conformance tools in AssemblyScript. `tests/conformance/README.md` says what each has to do.

import {
  Args, config, environmentSize, files, http, JsonObject, Kind, kindWord, Level, listOf, listOfTexts, log, monotonicNanoseconds, Output,
  peers, print, printError, progress, quoted, randomBytes, Request, secretExists, tool, wallMilliseconds,
} from "belljar-assemblyscript/assembly";
export * from "belljar-assemblyscript/assembly/exports";

let calls: i32 = 0;
const KINDS: string[] = ["invalid-arguments", "not-found", "denied", "too-large", "failed"];
const LEVELS: string[] = ["trace", "debug", "info", "warn", "error"];

tool("conf_types", "Answers its arguments, as JSON.", (args: Args): Output =>
  Output.json(
    new JsonObject()
      .string("text", args.string("text"))
      .integer("count", args.integer("count"))
      .number("ratio", args.number("ratio"))
      .boolean("flag", args.boolean("flag"))
      .raw("words", listOfTexts(args.strings("words")))
      .string("color", args.string("color"))
      .raw("note", args.has("note") ? quoted(args.string("note")) : "null")
      .toString(),
  ),
)
  .readOnly()
  .idempotent()
  .string("text", "Any text.")
  .integer("count", "A whole number.")
  .number("ratio", "A number.")
  .boolean("flag", "Yes or no.")
  .strings("words", "Some words.")
  .choice("color", ["red", "green", "blue"], "One of three.")
  .string("note", "May be left out.")
  .optional();

tool("conf_echo", "Answers the text.", (args: Args): Output => Output.text(args.string("text")))
  .readOnly()
  .idempotent()
  .string("text");

tool("conf_error", "Fails with an error of this kind.", (args: Args): Output =>
  Output.error(<Kind>max(0, KINDS.indexOf(args.string("kind"))), args.string("message")),
)
  .readOnly()
  .string("kind")
  .string("message");

tool("conf_output", "Answers so many times `x`.", (args: Args): Output =>
  Output.text("x".repeat(<i32>args.integer("bytes"))),
)
  .readOnly()
  .integer("bytes");

tool("conf_parts", "Answers a text, JSON and a file.", (args: Args): Output => {
  const bytes = new Uint8Array(256);
  for (let at = 0; at < 256; at++) bytes[at] = <u8>at;
  return Output.text("one").addJson('{"two":2}').addFile("three.bin", "application/octet-stream", bytes);
}).readOnly();

tool("conf_read", "Answers the content of a file.", (args: Args): Output => {
  const text = files.read(args.string("path"));
  return text === null ? files.error() : Output.text(text);
})
  .readOnly()
  .string("path");

function told(worked: bool, word: string): Output {
  return worked ? Output.text(word) : files.error();
}

tool("conf_write", "Writes a file.", (args: Args): Output =>
  told(files.write(args.string("path"), args.string("text")), "written"),
)
  .string("path")
  .string("text");

tool("conf_append", "Writes at the end of a file.", (args: Args): Output =>
  told(files.append(args.string("path"), args.string("text")), "appended"),
)
  .string("path")
  .string("text");

tool("conf_list", "Answers the names in a directory, sorted.", (args: Args): Output => {
  const names = files.list(args.string("path"));
  if (names === null) return files.error();
  return Output.json(listOfTexts(names.sort()));
})
  .readOnly()
  .string("path");

tool("conf_mkdir", "Makes a directory.", (args: Args): Output => told(files.makeDirectory(args.string("path")), "made")).string(
  "path",
);

tool("conf_rename", "Renames a file.", (args: Args): Output =>
  told(files.rename(args.string("source"), args.string("target")), "renamed"),
)
  .string("source")
  .string("target");

tool("conf_remove", "Removes a file.", (args: Args): Output => told(files.remove(args.string("path")), "removed")).string("path");

tool("conf_http", "Sends a request and answers its status and body.", (args: Args): Output => {
  const body = args.has("body") ? args.string("body") : null;
  const answer = http.request(args.string("method"), args.string("url"), body);
  if (answer === null) return http.error();
  return Output.json(new JsonObject().integer("status", answer.status).string("body", answer.text).toString());
})
  .openWorld()
  .string("method")
  .string("url")
  .string("body")
  .optional();

tool("conf_config", "Answers a setting.", (args: Args): Output => {
  const value = config(args.string("key"));
  return Output.json(new JsonObject().raw("value", value === null ? "null" : quoted(value)).toString());
})
  .readOnly()
  .string("key");

tool("conf_secret", "Answers whether a secret exists.", (args: Args): Output =>
  Output.json(new JsonObject().boolean("exists", secretExists(args.string("name"))).toString()),
)
  .readOnly()
  .string("name");

tool("conf_log", "Logs a message.", (args: Args): Output => {
  const level = <Level>LEVELS.indexOf(args.string("level"));
  for (let at: i64 = 0; at < args.integer("times"); at++) log(level, args.string("message"));
  return Output.text("logged");
})
  .readOnly()
  .choice("level", LEVELS)
  .string("message")
  .integer("times");

tool("conf_progress", "Reports progress.", (args: Args): Output => {
  const steps = args.integer("steps");
  for (let step: i64 = 1; step <= steps; step++) progress(step, steps, "step " + step.toString());
  return Output.text("reported");
})
  .readOnly()
  .integer("steps");

tool("conf_clock", "Answers the time, and how long a moment takes.", (args: Args): Output => {
  const begun = monotonicNanoseconds(), elapsed = monotonicNanoseconds() - begun;
  return Output.json(new JsonObject().integer("wall_ms", wallMilliseconds()).integer("elapsed_ns", elapsed).toString());
}).readOnly();

tool("conf_random", "Answers random bytes.", (args: Args): Output => {
  const bytes = randomBytes(<i32>args.integer("bytes"));
  let hex = "";
  for (let at = 0; at < bytes.length; at++) hex += (bytes[at] < 16 ? "0" : "") + bytes[at].toString(16);
  return Output.json(new JsonObject().string("hex", hex).toString());
})
  .readOnly()
  .integer("bytes");

tool("conf_environment", "Answers how many environment variables there are.", (args: Args): Output =>
  Output.json(new JsonObject().integer("variables", environmentSize()).toString()),
).readOnly();

tool("conf_print", "Writes to the standard streams.", (args: Args): Output => {
  print(args.string("out"));
  printError(args.string("err"));
  return Output.text("printed");
})
  .readOnly()
  .string("out")
  .string("err");

tool("conf_count", "Answers how often it was called in this store.", (args: Args): Output =>
  Output.json(new JsonObject().integer("count", ++calls).toString()),
).readOnly();

tool("conf_trap", "Ends the instance.", (args: Args): Output => {
  throw new Error("as it was asked to");
}).readOnly();

let turns: u32 = 0;
tool("conf_loop", "Never ends.", (args: Args): Output => {
  while (true) turns = (turns + 1) % 7;
  return Output.text("ended");
}).readOnly();

const taken: ArrayBuffer[] = [];
tool("conf_memory", "Takes memory until there is none.", (args: Args): Output => {
  while (true) {
    const block = new ArrayBuffer(1 << 20);
    memory.fill(changetype<usize>(block), 1, 1 << 20);
    taken.push(block);
  }
  return Output.text("ended");
}).readOnly();

tool("conf_peers", "Answers the other tools that can be called.", (args: Args): Output =>
  Output.json(
    listOf(
      peers.list().map<string>((one) =>
        new JsonObject()
          .string("name", one.name)
          .string("description", one.description)
          .raw("schema", one.schema)
          .boolean("read_only", one.readOnly)
          .toString(),
      ),
    ),
  ),
).readOnly();

tool("conf_call", "Calls another tool and answers what it answers.", (args: Args): Output =>
  peers.call(args.string("tool"), args.string("arguments")),
)
  .string("tool")
  .string("arguments");

tool("conf_call_many", "Calls other tools at once.", (args: Args): Output => {
  const names = args.strings("tools"), given = args.strings("arguments"), requests: Request[] = [];
  for (let at = 0; at < names.length; at++) requests.push(new Request(names[at], given[at]));
  return Output.json(
    listOf(
      peers.callMany(requests).map<string>((made) =>
        made.isError
          ? new JsonObject().string("error", kindWord(made.kind)).toString()
          : new JsonObject().string("ok", made.allText).toString(),
      ),
    ),
  );
})
  .strings("tools")
  .strings("arguments");
