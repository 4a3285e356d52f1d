// The contract's errors.

export class ToolError extends Error {
  constructor(kind, message) {
    super(message);
    this.name = "ToolError";
    this.kind = kind;
  }
}

export const invalidArguments = (message) => new ToolError("invalid-arguments", message);
export const notFound = (message) => new ToolError("not-found", message);
export const denied = (message) => new ToolError("denied", message);
export const tooLarge = (message) => new ToolError("too-large", message);
export const failed = (message) => new ToolError("failed", message);

// The contract's error for whatever a tool's function threw.
export function errorOf(thrown) {
  if (thrown instanceof ToolError) return thrown;
  if (thrown instanceof Error) return failed(`${thrown.name}: ${thrown.message}`);
  return failed(String(thrown));
}

// The payload of an error that a function of the host threw.
export function payload(thrown) {
  if (thrown && typeof thrown === "object" && "payload" in thrown) return thrown.payload;
  return thrown;
}

// The name of a variant's or an enum's case.
export function tagOf(value) {
  return value && typeof value === "object" && "tag" in value ? value.tag : String(value);
}
