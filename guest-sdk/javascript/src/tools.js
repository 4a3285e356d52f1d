// The tools of a component, and what the component exports.

import { errorOf, invalidArguments, notFound, ToolError } from "./errors.js";
import { lowered, outputOf } from "./output.js";
import { read, schemaOf } from "./schema.js";

const all = new Map();

export function tool(definition) {
  if (all.has(definition.name)) throw new Error(`there are two tools \`${definition.name}\``);
  all.set(definition.name, { arguments: {}, ...definition });
  return definition.run;
}

class Abort extends Error {}

// Ends the instance; the tool's next call gets a fresh store.
export function abort(message) {
  throw new Abort(message);
}

function run(name, text) {
  const found = all.get(name);
  if (found === undefined) throw notFound(`this component has no tool \`${name}\``);
  let given;
  try {
    given = JSON.parse(text);
  } catch (error) {
    throw invalidArguments(`the arguments are not JSON: ${error.message}`);
  }
  return outputOf(found.run(read(found.arguments, given)));
}

// The export of the component: a tool's module has `export { tools } from "belljar-tool"`.
export const tools = {
  describe: () =>
    [...all.values()].map((one) => ({
      name: one.name,
      description: one.description,
      inputSchema: JSON.stringify(schemaOf(one.arguments)),
      hints: {
        readOnly: one.readOnly ?? false,
        idempotent: one.idempotent ?? false,
        openWorld: one.openWorld ?? false,
      },
    })),

  invoke(call) {
    try {
      return lowered(run(call.tool, call.arguments));
    } catch (thrown) {
      // What is no error of the contract ends the engine.
      if (thrown instanceof Abort) throw thrown;
      if (!(thrown instanceof ToolError) && thrown?.stack !== undefined)
        console.error(`${thrown}\n${thrown.stack}`);
      const error = errorOf(thrown);
      throw { tag: error.kind, val: error.message };
    }
  },
};
