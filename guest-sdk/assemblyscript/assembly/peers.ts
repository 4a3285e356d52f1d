// The other tools of the agent that a tool works for. They are there when `tool.toml` asks for them
// (`peers = true`, or a list of names) and the operator agrees. A call made here is a call of that agent.

import { lastLength, lendText, lent, putText, slot, takeBytes, takeText } from "./memory";
import { Kind, Output } from "./output";

@external("belljar:tool/peers@0.2.0", "list")
declare function importList(into: usize): void;
@external("belljar:tool/peers@0.2.0", "call")
declare function importCall(name: usize, nameLength: usize, given: usize, length: usize, into: usize): void;
@external("belljar:tool/peers@0.2.0", "call-many")
declare function importCallMany(calls: usize, count: usize, into: usize): void;

// A tool that can be called; its schema is JSON text.
export class Peer {
  constructor(
    readonly name: string,
    readonly description: string,
    readonly schema: string,
    readonly readOnly: bool,
    readonly idempotent: bool,
    readonly openWorld: bool,
  ) {}
}

// A call to be made: the tool, and its arguments as JSON text.
export class Request {
  constructor(readonly tool: string, readonly given: string = "{}") {}
}

export namespace peers {
  // Those that can be called, in the agent's order.
  export function list(): Peer[] {
    importList(slot);
    const from = load<usize>(slot), count = load<usize>(slot, 4), all: Peer[] = [];
    for (let at: usize = 0; at < count; at++) {
      const one = from + at * 28, hints = load<u8>(one, 24);
      all.push(
        new Peer(takeText(one), takeText(one + 8), takeText(one + 16), (hints & 1) != 0, (hints & 2) != 0, (hints & 4) != 0),
      );
    }
    if (count > 0) heap.free(from);
    return all;
  }

  // Calls one and waits for its answer, or its error.
  export function call(tool: string, given: string = "{}"): Output {
    const name = lendText(tool), nameLength = lastLength, text = lendText(given);
    importCall(name, nameLength, text, lastLength, slot);
    return taken(slot);
  }

  // Calls several at once; those that only read overlap. One answer or error for each, in their order.
  export function callMany(requests: Request[]): Output[] {
    const calls = lent(requests.length * 16), outputs: Output[] = [];
    for (let at = 0; at < requests.length; at++) {
      putText(calls + at * 16, requests[at].tool);
      putText(calls + at * 16 + 8, requests[at].given);
    }
    importCallMany(calls, requests.length, slot);
    const from = load<usize>(slot), count = load<usize>(slot, 4);
    for (let at: usize = 0; at < count; at++) outputs.push(taken(from + at * 16));
    if (count > 0) heap.free(from);
    return outputs;
  }
}

function taken(result: usize): Output {
  if (load<u8>(result) != 0) return Output.error(<Kind>load<u8>(result, 4), takeText(result + 8));
  const output = new Output(), parts = load<usize>(result, 4), count = load<usize>(result, 8);
  for (let at: usize = 0; at < count; at++) {
    const part = parts + at * 28, tag = load<u8>(part);
    if (tag == 0) output.addText(takeText(part + 4));
    else if (tag == 1) output.addJson(takeText(part + 4));
    else output.addFile(takeText(part + 4), takeText(part + 12), takeBytes(part + 20));
  }
  if (count > 0) heap.free(parts);
  return output;
}
