// Types of arguments: each is a JSON schema and the check of a value against it.

import { invalidArguments } from "./errors.js";

class Type {
  constructor(schema, name, fits) {
    this.schema = schema;
    this.name = name;
    this.fits = fits;
    this.isOptional = false;
    this.fallback = undefined;
  }

  // May be left out, or null; `fallback` is what the tool sees then.
  optional(fallback) {
    const copy = Object.assign(Object.create(Type.prototype), this);
    copy.isOptional = true;
    copy.fallback = fallback;
    if (fallback !== undefined) copy.schema = { ...this.schema, default: fallback };
    return copy;
  }

  read(value, where) {
    if (value === undefined || value === null) {
      if (this.isOptional) return this.fallback;
      if (value === undefined) throw invalidArguments(`missing field \`${where}\``);
    }
    if (!this.fits(value))
      throw invalidArguments(`\`${where}\`: expected ${this.name}, got ${shown(value)}`);
    return this.inner ? this.inner(value, where) : value;
  }
}

const described = (schema, description) =>
  description === undefined ? schema : { ...schema, description };

export const t = {
  string: (description, more = {}) =>
    new Type(described({ type: "string", ...more }, description), "a string", isString),
  integer: (description, more = {}) =>
    new Type(described({ type: "integer", ...more }, description), "an integer", Number.isInteger),
  number: (description, more = {}) =>
    new Type(described({ type: "number", ...more }, description), "a number", isNumber),
  boolean: (description) =>
    new Type(described({ type: "boolean" }, description), "true or false", isBoolean),
  oneOf: (choices, description) => {
    const listed = choices.map((choice) => `\`${choice}\``).join(", ");
    const schema = described({ type: "string", enum: [...choices] }, description);
    return new Type(schema, `one of ${listed}`, (value) => choices.includes(value));
  },
  list: (items, description) => {
    const schema = described({ type: "array", items: items.schema }, description);
    const type = new Type(schema, "a list", Array.isArray);
    type.inner = (value, where) => value.map((item, at) => items.read(item, `${where}[${at}]`));
    return type;
  },
  object: (fields, description) => {
    const type = new Type(described(schemaOf(fields), description), "an object", isObject);
    type.inner = (value, where) => read(fields, value, where);
    return type;
  },
};

// The schema of an object with these fields.
export function schemaOf(fields) {
  const properties = {};
  const required = [];
  for (const [name, type] of Object.entries(fields)) {
    properties[name] = type.schema;
    if (!type.isOptional) required.push(name);
  }
  const schema = { type: "object", properties };
  if (required.length > 0) schema.required = required;
  return { ...schema, additionalProperties: false };
}

// An object's fields, checked.
export function read(fields, given, where = "") {
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(fields, name)) {
      const known = Object.keys(fields).map((one) => `\`${one}\``);
      throw invalidArguments(
        `unknown field \`${name}\`, expected one of ${known.join(", ") || "none"}`,
      );
    }
  }
  const values = {};
  for (const [name, type] of Object.entries(fields)) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    values[name] = type.read(value, where === "" ? name : `${where}.${name}`);
  }
  return values;
}

const isString = (value) => typeof value === "string";
const isNumber = (value) => typeof value === "number";
const isBoolean = (value) => typeof value === "boolean";
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

function shown(value) {
  if (Array.isArray(value)) return "a list";
  if (isObject(value)) return "an object";
  return isString(value) ? `the text \`${value.slice(0, 40)}\`` : String(value);
}
