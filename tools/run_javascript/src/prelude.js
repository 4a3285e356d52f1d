// The functions that every script finds. Evaluated once, when the component is built; the arguments
// are the interpreter's own (`calls.rs`, `random.rs`, `engine.rs`). What is used later is taken here,
// so that a script which changes `JSON` or `Array.prototype` does not change what the next one sees
// of its tools.
(function (native) {
  "use strict";
  const { call, callMany, list, print, random } = native;
  const { parse, stringify } = JSON;
  const { apply, ownKeys } = Reflect;
  const toText = String;
  const push = Array.prototype.push;
  const join = Array.prototype.join;
  const isArray = Array.isArray;
  const getOwn = Object.getOwnPropertyDescriptor;
  const define = Object.defineProperty;
  const slice = String.prototype.slice;
  const split = String.prototype.split;
  const isoText = Date.prototype.toISOString;
  const wellFormed = String.prototype.toWellFormed;

  // A text that can leave the interpreter: half a surrogate pair is U+FFFD.
  function whole(text) {
    return apply(wellFormed, text, []);
  }

  const MAX_TEXT = 200000;
  const MAX_DEPTH = 6;
  const MAX_ITEMS = 200;

  class ToolError extends Error {
    constructor(tool, kind, message) {
      super(message);
      define(this, "tool", { value: tool, enumerable: true });
      define(this, "kind", { value: kind, enumerable: true });
    }
  }
  define(ToolError.prototype, "name", { value: "ToolError" });

  // A call that is not made yet, for `parallel`.
  class Later {
    #name;
    #text;
    constructor(name, args) {
      this.#name = whole(name);
      this.#text = text(name, args);
    }
    static pair(later) {
      return [later.#name, later.#text];
    }
    static is(value) {
      return typeof value === "object" && value !== null && #name in value;
    }
  }
  const pairOf = Later.pair;
  const isLater = Later.is;

  function text(name, args) {
    if (args === undefined) return "{}";
    if (typeof args !== "object" || args === null || isArray(args)) {
      throw new TypeError(`tools.${name} takes one object with its arguments: tools.${name}({...})`);
    }
    return stringify(args);
  }

  // One part is the result itself; of several there is a list.
  function result(name, answer) {
    if (answer.parts === undefined) return new ToolError(name, answer.kind, answer.message);
    return answer.parts.length === 0 ? null : answer.parts.length === 1 ? answer.parts[0] : answer.parts;
  }

  function make(name) {
    const made = function (args) {
      const value = result(name, call(whole(name), text(name, args)));
      if (value instanceof ToolError) throw value;
      return value;
    };
    define(made, "name", { value: name });
    define(made, "of", { value: (args) => new Later(name, args) });
    return made;
  }

  const made = Object.create(null);
  const tools = new Proxy(Object.create(null), {
    // Nothing of a script stays in it.
    set: () => false,
    defineProperty: () => false,
    setPrototypeOf: () => false,
    preventExtensions: () => false,
    deleteProperty: () => false,
    get(_, name) {
      if (typeof name !== "string" || name === "then" || name === "toJSON") return undefined;
      return (made[name] ??= make(name));
    },
    has: (_, name) => names().includes(name),
    ownKeys: () => names(),
    getOwnPropertyDescriptor(_, name) {
      if (!names().includes(name)) return undefined;
      return { value: tools[name], enumerable: true, configurable: true };
    },
  });

  function names() {
    return list().map((tool) => tool[0]);
  }

  // Makes calls at once, as far as they only read, and gives their results in order.
  function parallel(calls, options) {
    const settle = options !== undefined && options !== null && options.settle === true;
    const pending = [];
    const places = [];
    const results = [];
    for (let at = 0; at < calls.length; at++) {
      const one = calls[at];
      if (isLater(one)) {
        push.call(pending, pairOf(one));
        push.call(places, at);
      } else if (isArray(one) && typeof one[0] === "string") {
        push.call(pending, [whole(one[0]), text(one[0], one[1])]);
        push.call(places, at);
      } else if (typeof one === "function") {
        // A function may do more than one call: they are made in its turn.
        results[at] = attempt(one);
      } else {
        throw new TypeError(`parallel takes calls such as tools.file_read.of({path: "a"}), not ${typeof one}`);
      }
    }
    const answers = pending.length === 0 ? [] : callMany(pending);
    for (let at = 0; at < places.length; at++) {
      results[places[at]] = result(pending[at][0], answers[at]);
    }
    if (!settle) {
      for (const value of results) if (value instanceof Error) throw value;
    }
    return results;
  }

  function attempt(made) {
    try {
      return made();
    } catch (error) {
      return error instanceof Error ? error : new Error(toText(error));
    }
  }

  function help(name) {
    const lines = [];
    const wanted = typeof name === "function" ? name.name : name;
    for (const [tool, description, schema] of list()) {
      if (wanted !== undefined && wanted !== tool) continue;
      const short = wanted === undefined ? apply(split, description, [/(?<=[.!?])\s/])[0] : description;
      push.call(lines, `tools.${tool}(${signature(parse(schema), wanted !== undefined)}): ${short}`);
    }
    if (lines.length === 0) return wanted === undefined ? "there are no tools" : `there is no tool \`${wanted}\``;
    return join.call(lines, "\n");
  }

  function signature(schema, whole) {
    const required = schema.required ?? [];
    const all = Object.entries(schema.properties ?? {}).map(([key, of]) => {
      const type = of.enum ? of.enum.map((one) => stringify(one)).join(" | ") : of.type === "array" ? `${of.items?.type ?? "any"}[]` : (of.type ?? "any");
      const note = whole && of.description ? ` /* ${of.description} */` : "";
      return `${key}${required.includes(key) ? "" : "?"}: ${type}${note}`;
    });
    return all.length === 0 ? "" : `{${all.join(", ")}}`;
  }

  // A value as text, for a reader and not for a program.
  function show(value) {
    return whole(typeof value === "string" ? value : inspect(value, 0, []));
  }

  function inspect(value, depth, above) {
    switch (typeof value) {
      case "string": return stringify(value);
      case "bigint": return `${value}n`;
      case "symbol": return toText(value);
      case "function": return `[function ${getOwn(value, "name")?.value || "anonymous"}]`;
      case "object": break;
      default: return Object.is(value, -0) ? "-0" : toText(value);
    }
    if (value === null) return "null";
    if (value === tools) return "[tools]";
    if (above.includes(value)) return "[circular]";
    if (depth >= MAX_DEPTH) return isArray(value) ? "[...]" : "{...}";
    const inside = [...above, value];
    const nested = (one) => inspect(one, depth + 1, inside);
    if (value instanceof Error) return explain(value);
    if (value instanceof Date) return Number.isNaN(+value) ? "Invalid Date" : isoText.call(value);
    if (value instanceof RegExp) return toText(value);
    if (isArray(value) || ArrayBuffer.isView(value) && !(value instanceof DataView)) {
      const kind = isArray(value) ? "" : `${value.constructor?.name ?? ""} `;
      return `${kind}[${bounded(value, value.length, nested)}]`;
    }
    if (value instanceof Map) return `Map {${bounded(value, value.size, ([key, of]) => `${nested(key)} => ${nested(of)}`)}}`;
    if (value instanceof Set) return `Set {${bounded(value, value.size, nested)}}`;
    if (value instanceof Promise) return "Promise (pending)";
    const keys = ownKeys(value).filter((key) => getOwn(value, key)?.enumerable);
    const entry = (key) => {
      const at = getOwn(value, key);
      const name = typeof key === "string" && /^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(key) ? key : typeof key === "string" ? stringify(key) : `[${toText(key)}]`;
      return `${name}: ${at && "value" in at ? nested(at.value) : "[accessor]"}`;
    };
    const kind = value.constructor?.name;
    return `${kind && kind !== "Object" ? `${kind} ` : ""}{${bounded(keys, keys.length, entry)}}`;
  }

  function bounded(values, count, shown) {
    const out = [];
    let length = 0;
    for (const value of values) {
      if (out.length === MAX_ITEMS || length > MAX_TEXT) {
        push.call(out, `... ${count - out.length} more`);
        break;
      }
      const text = shown(value);
      length += text.length;
      push.call(out, text);
    }
    return join.call(out, ", ");
  }

  // An exception with those lines of its trace that are the script's.
  function explain(error) {
    if (!(error instanceof Error)) return `Uncaught ${show(error)}`;
    const head = `${error.name}: ${error.message}`;
    const lines = apply(split, toText(error.stack ?? ""), ["\n"]).filter((line) => line.includes("script:"));
    return whole(join.call([head, ...lines.slice(0, 20)], "\n"));
  }

  function log(...values) {
    let line = join.call(values.map(show), " ");
    if (line.length > MAX_TEXT) line = `${apply(slice, line, [0, MAX_TEXT])} ... ${line.length - MAX_TEXT} characters more`;
    print(whole(line));
  }

  const started = Date.now;
  const math = { value: random, writable: true, configurable: true };
  define(Math, "random", math);
  // The interpreter's own was set up when the component was built.
  define(globalThis, "performance", { value: { now: () => started(), timeOrigin: 0 }, writable: true, configurable: true });
  const console = { log, info: log, warn: log, error: log, debug: log, table: log, trace: log };
  const fixed = { tools, parallel, help, ToolError };
  for (const name of Object.keys(fixed)) define(globalThis, name, { value: fixed[name] });
  define(globalThis, "console", { value: console, writable: true, configurable: true });
  define(globalThis, "print", { value: log, writable: true, configurable: true });
  return { show, explain };
});
