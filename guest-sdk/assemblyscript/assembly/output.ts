// What a tool answers.

import { lent, putBytes, putText } from "./memory";

// The contract's errors.
export enum Kind {
  InvalidArguments,
  NotFound,
  Denied,
  TooLarge,
  Failed,
}

// The contract's word for a kind.
export function kindWord(kind: Kind): string {
  switch (kind) {
    case Kind.InvalidArguments: return "invalid-arguments";
    case Kind.NotFound: return "not-found";
    case Kind.Denied: return "denied";
    case Kind.TooLarge: return "too-large";
    default: return "failed";
  }
}

export class Part {
  constructor(
    // 0 text, 1 JSON, 2 a file
    readonly tag: u8,
    readonly text: string,
    readonly mediaType: string = "",
    readonly data: Uint8Array = new Uint8Array(0),
  ) {}
}

// An answer, or an error. The text of an error goes to the model: it says what to do differently.
export class Output {
  readonly parts: Part[] = [];
  isError: bool = false;
  kind: Kind = Kind.Failed;
  message: string = "";

  static text(text: string): Output { return new Output().addText(text); }
  static json(json: string): Output { return new Output().addJson(json); }
  static error(kind: Kind, message: string): Output {
    const output = new Output();
    output.isError = true;
    output.kind = kind;
    output.message = message;
    return output;
  }
  static invalidArguments(message: string): Output { return Output.error(Kind.InvalidArguments, message); }
  static notFound(message: string): Output { return Output.error(Kind.NotFound, message); }
  static denied(message: string): Output { return Output.error(Kind.Denied, message); }
  static tooLarge(message: string): Output { return Output.error(Kind.TooLarge, message); }
  static failed(message: string): Output { return Output.error(Kind.Failed, message); }

  addText(text: string): Output {
    this.parts.push(new Part(0, text));
    return this;
  }
  // `json` is JSON text.
  addJson(json: string): Output {
    this.parts.push(new Part(1, json));
    return this;
  }
  // The name is for display; the host keeps its last component only.
  addFile(name: string, mediaType: string, data: Uint8Array): Output {
    this.parts.push(new Part(2, name, mediaType, data));
    return this;
  }

  // The texts and the JSON, one below the other.
  get allText(): string {
    const texts: string[] = [];
    for (let at = 0; at < this.parts.length; at++)
      if (this.parts[at].tag != 2) texts.push(this.parts[at].text);
    return texts.join("\n");
  }
}

// The form in which the contract has it.
export function lower(output: Output): usize {
  const result = lent(16);
  if (output.isError) {
    store<u8>(result, 1);
    store<u8>(result, <u8>output.kind, 4);
    putText(result + 8, output.message);
    return result;
  }
  const parts = lent(output.parts.length * 28);
  store<usize>(result, parts, 4);
  store<usize>(result, <usize>output.parts.length, 8);
  for (let at = 0; at < output.parts.length; at++) {
    const part = output.parts[at], to = parts + at * 28;
    store<u8>(to, part.tag);
    putText(to + 4, part.text);
    if (part.tag == 2) {
      putText(to + 12, part.mediaType);
      putBytes(to + 20, part.data);
    }
  }
  return result;
}
