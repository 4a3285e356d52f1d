// What a tool answers.

class Part {
  constructor(tag, val) {
    this.tag = tag;
    this.val = val;
  }
}

class Output {
  constructor(parts) {
    this.parts = parts;
  }

  // The texts and the JSON, one below the other.
  get text() {
    const texts = this.parts.filter(({ tag }) => tag !== "attachment");
    return texts.map(({ val }) => val).join("\n");
  }
}

export const text = (value) => new Part("text", String(value));
export const json = (value) => new Part("json", JSON.stringify(value));
export const attachment = (name, mediaType, data) =>
  new Part("attachment", { name, mediaType, data });

// An answer of several parts. Strings are text, other values JSON.
export const output = (...parts) => new Output(parts.map(part));

export function outputOf(value) {
  if (value instanceof Output) return value;
  return value === undefined ? new Output([]) : output(value);
}

function part(value) {
  if (value instanceof Part) return value;
  return typeof value === "string" ? text(value) : json(value);
}

// The form in which the contract has it.
export const lowered = (made) => ({ parts: made.parts.map(({ tag, val }) => ({ tag, val })) });

// And back.
export const raised = (answer) => new Output(answer.parts.map(({ tag, val }) => new Part(tag, val)));
