// The conformance tools in TypeScript. `tests/conformance/README.md` says what each has to do.

import {
  abort, attachment, config, files, http, json, log, output, peers, progress, randomBytes, secretExists, t,
  tool, ToolError, type ErrorKind, type LogLevel,
} from "belljar-tool";
export { tools } from "belljar-tool";

let calls = 0;

tool({
  name: "conf_types",
  description: "Answers its arguments, as JSON.",
  readOnly: true,
  idempotent: true,
  arguments: {
    text: t.string("Any text."),
    count: t.integer("A whole number."),
    ratio: t.number("A number."),
    flag: t.boolean("Yes or no."),
    words: t.list(t.string(), "Some words."),
    color: t.oneOf(["red", "green", "blue"], "One of three."),
    note: t.string("May be left out.").optional(),
  },
  run: ({ text, count, ratio, flag, words, color, note }) =>
    json({ text, count, ratio, flag, words, color, note: note ?? null }),
});

tool({
  name: "conf_echo",
  description: "Answers the text.",
  readOnly: true,
  idempotent: true,
  arguments: { text: t.string() },
  run: ({ text }) => text,
});

tool({
  name: "conf_error",
  description: "Fails with an error of this kind.",
  readOnly: true,
  arguments: { kind: t.string(), message: t.string() },
  run({ kind, message }) {
    throw new ToolError(kind as ErrorKind, message);
  },
});

tool({
  name: "conf_output",
  description: "Answers so many times `x`.",
  readOnly: true,
  arguments: { bytes: t.integer() },
  run: ({ bytes }) => "x".repeat(bytes),
});

tool({
  name: "conf_parts",
  description: "Answers a text, JSON and a file.",
  readOnly: true,
  run() {
    const bytes = Uint8Array.from({ length: 256 }, (_, at) => at);
    return output("one", { two: 2 }, attachment("three.bin", "application/octet-stream", bytes));
  },
});

tool({
  name: "conf_read",
  description: "Answers the content of a file.",
  readOnly: true,
  arguments: { path: t.string() },
  run: ({ path }) => files.read(path),
});

tool({
  name: "conf_write",
  description: "Writes a file.",
  arguments: { path: t.string(), text: t.string() },
  run({ path, text }) {
    files.write(path, text);
    return "written";
  },
});

tool({
  name: "conf_append",
  description: "Writes at the end of a file.",
  arguments: { path: t.string(), text: t.string() },
  run({ path, text }) {
    files.append(path, text);
    return "appended";
  },
});

tool({
  name: "conf_list",
  description: "Answers the names in a directory, sorted.",
  readOnly: true,
  arguments: { path: t.string() },
  run: ({ path }) => json(files.list(path).map((entry) => entry.name)),
});

tool({
  name: "conf_mkdir",
  description: "Makes a directory.",
  arguments: { path: t.string() },
  run({ path }) {
    files.makeDirectory(path);
    return "made";
  },
});

tool({
  name: "conf_rename",
  description: "Renames a file.",
  arguments: { source: t.string(), target: t.string() },
  run({ source, target }) {
    files.rename(source, target);
    return "renamed";
  },
});

tool({
  name: "conf_remove",
  description: "Removes a file.",
  arguments: { path: t.string() },
  run({ path }) {
    files.remove(path);
    return "removed";
  },
});

tool({
  name: "conf_http",
  description: "Sends a request and answers its status and body.",
  openWorld: true,
  arguments: { method: t.string(), url: t.string(), body: t.string().optional() },
  run({ method, url, body }) {
    const answer = http.request(method, url, { body });
    return json({ status: answer.status, body: answer.text() });
  },
});

tool({
  name: "conf_config",
  description: "Answers a setting.",
  readOnly: true,
  arguments: { key: t.string() },
  run: ({ key }) => json({ value: config(key) ?? null }),
});

tool({
  name: "conf_secret",
  description: "Answers whether a secret exists.",
  readOnly: true,
  arguments: { name: t.string() },
  run: ({ name }) => json({ exists: secretExists(name) }),
});

tool({
  name: "conf_log",
  description: "Logs a message.",
  readOnly: true,
  arguments: { level: t.string(), message: t.string(), times: t.integer() },
  run({ level, message, times }) {
    for (let at = 0; at < times; at++) log[level as LogLevel](message);
    return "logged";
  },
});

tool({
  name: "conf_progress",
  description: "Reports progress.",
  readOnly: true,
  arguments: { steps: t.integer() },
  run({ steps }) {
    for (let step = 1; step <= steps; step++) progress(step, steps, `step ${step}`);
    return "reported";
  },
});

tool({
  name: "conf_clock",
  description: "Answers the time, and how long a moment takes.",
  readOnly: true,
  run() {
    const begun = performance.now();
    const elapsed = performance.now() - begun;
    return json({ wall_ms: Date.now(), elapsed_ns: Math.round(elapsed * 1e6) });
  },
});

tool({
  name: "conf_random",
  description: "Answers random bytes.",
  readOnly: true,
  arguments: { bytes: t.integer() },
  run({ bytes }) {
    const digits = Array.from(randomBytes(bytes), (byte) => byte.toString(16).padStart(2, "0"));
    return json({ hex: digits.join("") });
  },
});

tool({
  name: "conf_environment",
  description: "Answers how many environment variables there are.",
  readOnly: true,
  run: () => json({ variables: Object.keys(globalThis.process?.env ?? {}).length }),
});

tool({
  name: "conf_print",
  description: "Writes to the standard streams.",
  readOnly: true,
  arguments: { out: t.string(), err: t.string() },
  run({ out, err }) {
    console.log(out);
    console.error(err);
    return "printed";
  },
});

tool({
  name: "conf_count",
  description: "Answers how often it was called in this store.",
  readOnly: true,
  run: () => json({ count: ++calls }),
});

tool({
  name: "conf_trap",
  description: "Ends the instance.",
  readOnly: true,
  run() {
    abort("as it was asked to");
  },
});

tool({
  name: "conf_loop",
  description: "Never ends.",
  readOnly: true,
  run() {
    for (;;);
  },
});

tool({
  name: "conf_memory",
  description: "Takes memory until there is none.",
  readOnly: true,
  run() {
    const taken: Uint8Array[] = [];
    for (;;) taken.push(new Uint8Array(1 << 20).fill(1));
  },
});

tool({
  name: "conf_peers",
  description: "Answers the other tools that can be called.",
  readOnly: true,
  run: () =>
    json(
      peers.list().map(({ name, description, schema, readOnly }) => ({
        name, description, schema, read_only: readOnly,
      })),
    ),
});

tool({
  name: "conf_call",
  description: "Calls another tool and answers what it answers.",
  arguments: { tool: t.string(), arguments: t.string() },
  run: ({ tool, arguments: given }) => peers.call(tool, JSON.parse(given)),
});

tool({
  name: "conf_call_many",
  description: "Calls other tools at once.",
  arguments: { tools: t.list(t.string()), arguments: t.list(t.string()) },
  run({ tools, arguments: given }) {
    const calls = tools.map((tool, at): [string, object] => [tool, JSON.parse(given[at] ?? "{}")]);
    return json(
      peers.callMany(calls).map((one) =>
        one.status === "fulfilled" ? { ok: one.value.text } : { error: one.reason.kind },
      ),
    );
  },
});
