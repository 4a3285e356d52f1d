// The contract's functions. A tool's module has `export * from "belljar-assemblyscript/assembly/exports"`;
// `belljar tools build` gives them the contract's names.

import { freeAll, lent, putText } from "./memory";
import { lower, Output } from "./output";
import { tools } from "./tool";

export { cabi_realloc } from "./memory";

export function describe(): usize {
  const list = lent(tools.length * 28), result = lent(8);
  for (let at = 0; at < tools.length; at++) {
    const to = list + at * 28;
    putText(to, tools[at].name);
    putText(to + 8, tools[at].description);
    putText(to + 16, tools[at].schema());
    store<u8>(to, tools[at].hints, 24);
  }
  store<usize>(result, list);
  store<usize>(result, <usize>tools.length, 4);
  return result;
}

export function invoke(name: usize, nameLength: usize, given: usize, length: usize): usize {
  const wanted = taken(name, nameLength), text = taken(given, length);
  for (let at = 0; at < tools.length; at++) if (tools[at].name == wanted) return lower(tools[at].call(text));
  return lower(Output.notFound("this component has no tool `" + wanted + "`"));
}

export function cabi_post_describe(result: usize): void {
  freeAll();
}

export function cabi_post_invoke(result: usize): void {
  freeAll();
}

function taken(data: usize, length: usize): string {
  if (length == 0) return "";
  const text = String.UTF8.decodeUnsafe(data, length);
  heap.free(data);
  return text;
}
