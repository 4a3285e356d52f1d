// The other tools of the agent that a tool works for.

import { call, callMany, list } from "belljar:tool/peers@0.2.0";

import { payload, tagOf, ToolError } from "./errors.js";
import { raised } from "./output.js";

const errorOf = (error) => new ToolError(tagOf(error), error.val);
const lowered = (tool, given = {}) => ({ tool, arguments: JSON.stringify(given) });

export const peers = {
  list: () =>
    list().map(({ name, description, inputSchema, hints }) => ({
      name,
      description,
      schema: JSON.parse(inputSchema),
      readOnly: hints.readOnly,
      idempotent: hints.idempotent,
      openWorld: hints.openWorld,
    })),

  call(tool, given) {
    let answer;
    try {
      answer = call(lowered(tool, given));
    } catch (thrown) {
      const error = payload(thrown);
      throw error && typeof error === "object" && "tag" in error ? errorOf(error) : thrown;
    }
    return raised(answer);
  },

  callMany: (calls) =>
    callMany(calls.map(([tool, given]) => lowered(tool, given))).map(({ tag, val }) =>
      tag === "ok"
        ? { status: "fulfilled", value: raised(val) }
        : { status: "rejected", reason: errorOf(val) },
    ),
};
