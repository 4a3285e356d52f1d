// Tools: their arguments, their schema, and the check of a call against it.

import { JsonObject, listOf, listOfTexts, parse, quoted, Type, Value } from "./json";
import { Output } from "./output";

// Characters of a text that a message quotes.
const MOST_SHOWN: i32 = 40;

function mismatch(where: string, expected: string, value: Value): string {
  return "`" + where + "`: expected " + expected + ", got " + shown(value);
}

function shown(value: Value): string {
  if (value.type == Type.Null) return "null";
  if (value.type == Type.Boolean) return value.flag ? "true" : "false";
  if (value.type == Type.Number) return "the number " + value.raw.substring(0, MOST_SHOWN);
  if (value.type == Type.Text) return "the text `" + value.text.substring(0, MOST_SHOWN) + "`";
  return value.type == Type.List ? "a list" : "an object";
}

class Field {
  optional: bool = false;
  constructor(
    readonly name: string,
    readonly type: string,
    readonly description: string,
    readonly choices: string[],
  ) {}

  schema(): string {
    const schema = new JsonObject().string("type", this.type);
    if (this.type == "array") schema.raw("items", '{"type":"string"}');
    if (this.choices.length > 0) schema.raw("enum", listOfTexts(this.choices));
    if (this.description != "") schema.string("description", this.description);
    return schema.toString();
  }

  // Why a value does not fit; empty where it does.
  misfit(value: Value): string {
    if (this.type == "string") {
      if (value.type != Type.Text) return mismatch(this.name, "a string", value);
      if (this.choices.length == 0 || this.choices.includes(value.text)) return "";
      const listed = this.choices.map<string>((one) => "`" + one + "`").join(", ");
      return "`" + this.name + "`: " + shown(value) + " is none of " + listed;
    }
    if (this.type == "boolean") return value.type == Type.Boolean ? "" : mismatch(this.name, "true or false", value);
    if (this.type == "array") {
      if (value.type != Type.List) return mismatch(this.name, "a list", value);
      for (let at = 0; at < value.items.length; at++) {
        const item = value.items[at];
        if (item.type != Type.Text) return mismatch(this.name + "[" + at.toString() + "]", "a string", item);
      }
      return "";
    }
    const expected = this.type == "number" ? "a number" : "an integer";
    if (value.type != Type.Number) return mismatch(this.name, expected, value);
    const number = parseFloat(value.raw);
    const fits = this.type == "number" || (isFinite(number) && Math.trunc(number) == number);
    return fits ? "" : mismatch(this.name, expected, value);
  }
}

// The arguments of a call, checked: reading one that was not declared ends the instance.
export class Args {
  constructor(private readonly given: Value) {}

  // Whether an optional argument is there.
  has(name: string): bool {
    const value = this.given.get(name);
    return value !== null && value.type != Type.Null;
  }
  string(name: string): string { return this.given.get(name)!.text; }
  boolean(name: string): bool { return this.given.get(name)!.flag; }
  number(name: string): f64 { return parseFloat(this.given.get(name)!.raw); }
  integer(name: string): i64 {
    const raw = this.given.get(name)!.raw;
    // Exact where a double is not.
    return raw.includes(".") || raw.includes("e") || raw.includes("E") ? <i64>parseFloat(raw) : I64.parseInt(raw);
  }
  strings(name: string): string[] { return this.given.get(name)!.items.map<string>((one) => one.text); }
}

// A tool that is being described: each function adds to it.
export class Tool {
  hints: u8 = 0;
  private fields: Field[] = [];
  constructor(
    readonly name: string,
    readonly description: string,
    readonly run: (args: Args) => Output,
  ) {}

  // A promise: it changes nothing outside its own store.
  readOnly(): Tool { return this.hint(1); }
  // A promise: calling it again changes nothing more.
  idempotent(): Tool { return this.hint(2); }
  // It talks to the network.
  openWorld(): Tool { return this.hint(4); }

  string(name: string, description: string = ""): Tool { return this.add(name, "string", description, []); }
  integer(name: string, description: string = ""): Tool { return this.add(name, "integer", description, []); }
  number(name: string, description: string = ""): Tool { return this.add(name, "number", description, []); }
  boolean(name: string, description: string = ""): Tool { return this.add(name, "boolean", description, []); }
  strings(name: string, description: string = ""): Tool { return this.add(name, "array", description, []); }
  // A text with one of these values.
  choice(name: string, choices: string[], description: string = ""): Tool {
    return this.add(name, "string", description, choices);
  }
  // The argument before this may be left out, or null.
  optional(): Tool {
    this.fields[this.fields.length - 1].optional = true;
    return this;
  }

  schema(): string {
    const properties = new JsonObject(), required: string[] = [];
    for (let at = 0; at < this.fields.length; at++) {
      const field = this.fields[at];
      properties.raw(field.name, field.schema());
      if (!field.optional) required.push(quoted(field.name));
    }
    const schema = new JsonObject().string("type", "object").raw("properties", properties.toString());
    if (required.length > 0) schema.raw("required", listOf(required));
    return schema.boolean("additionalProperties", false).toString();
  }

  // Checks a call and runs it.
  call(text: string): Output {
    const given = parse(text);
    if (given === null || given.type != Type.Object) return Output.invalidArguments("the arguments are no JSON object");
    for (let at = 0; at < given.keys.length; at++) {
      if (!this.knows(given.keys[at])) return Output.invalidArguments("unknown field `" + given.keys[at] + "`");
    }
    for (let at = 0; at < this.fields.length; at++) {
      const field = this.fields[at], value = given.get(field.name);
      if (value === null || (field.optional && value.type == Type.Null)) {
        if (!field.optional) return Output.invalidArguments("missing field `" + field.name + "`");
      } else {
        const why = field.misfit(value);
        if (why != "") return Output.invalidArguments(why);
      }
    }
    return this.run(new Args(given));
  }

  private knows(name: string): bool {
    for (let at = 0; at < this.fields.length; at++) if (this.fields[at].name == name) return true;
    return false;
  }
  private hint(hint: u8): Tool {
    this.hints |= hint;
    return this;
  }
  private add(name: string, type: string, description: string, choices: string[]): Tool {
    this.fields.push(new Field(name, type, description, choices));
    return this;
  }
}

export const tools: Tool[] = [];

// Offers a tool: its name, its description for models, its function.
export function tool(name: string, description: string, run: (args: Args) => Output): Tool {
  const made = new Tool(name, description, run);
  tools.push(made);
  return made;
}
