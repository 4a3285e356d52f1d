// Types of the SDK. The arguments of a tool's function have the types of its schema.

export type ErrorKind = "invalid-arguments" | "not-found" | "denied" | "too-large" | "failed";
export type LogLevel = "trace" | "debug" | "info" | "warn" | "error";

/** Why a call gives nothing. The text goes to the model: say what to do differently. */
export class ToolError extends Error {
  constructor(kind: ErrorKind, message: string);
  readonly kind: ErrorKind;
}
export function invalidArguments(message: string): ToolError;
export function notFound(message: string): ToolError;
export function denied(message: string): ToolError;
export function tooLarge(message: string): ToolError;
export function failed(message: string): ToolError;

/** A type of an argument: a JSON schema and the check against it. */
export interface Type<T> {
  readonly schema: object;
  /** May be left out, or null. */
  optional(): Type<T | undefined>;
  /** May be left out, or null; the tool sees this value then. */
  optional(fallback: T): Type<T>;
}
export type Fields = Record<string, Type<unknown>>;
export type Infer<F extends Fields> = { [K in keyof F]: F[K] extends Type<infer T> ? T : never };

/** The types of arguments. A description is for the model; `more` is merged into the schema. */
export const t: {
  string(description?: string, more?: object): Type<string>;
  integer(description?: string, more?: object): Type<number>;
  number(description?: string, more?: object): Type<number>;
  boolean(description?: string): Type<boolean>;
  oneOf<const C extends string>(choices: readonly C[], description?: string): Type<C>;
  list<T>(items: Type<T>, description?: string): Type<T[]>;
  object<F extends Fields>(fields: F, description?: string): Type<Infer<F>>;
};

export interface Attachment {
  readonly name: string;
  readonly mediaType: string;
  readonly data: Uint8Array;
}
export type Part =
  | { readonly tag: "text" | "json"; readonly val: string }
  | { readonly tag: "attachment"; readonly val: Attachment };
export interface Output {
  readonly parts: Part[];
  /** The texts and the JSON, one below the other. */
  readonly text: string;
}
export function text(value: string): Part;
/** A part that is JSON, for values that would be taken as text otherwise. */
export function json(value: unknown): Part;
/** A part that is a file. The name is for display; the host keeps its last component only. */
export function attachment(name: string, mediaType: string, data: Uint8Array): Part;
/** An answer of several parts. Strings are text, other values JSON. */
export function output(...parts: unknown[]): Output;

export interface Definition<F extends Fields> {
  /** A letter, then letters, digits and `_`, all lower case. */
  name: string;
  /** Tells the model when and how to use the tool. */
  description: string;
  arguments?: F;
  /** A promise: it changes nothing outside its own store. */
  readOnly?: boolean;
  /** A promise: calling it again changes nothing more. */
  idempotent?: boolean;
  /** It talks to the network. */
  openWorld?: boolean;
  /** The answer: a part, an output, a string, or what JSON can express. */
  run(args: Infer<F>): unknown;
}
/** Offers a tool. */
export function tool<F extends Fields = {}>(definition: Definition<F>): (args: Infer<F>) => unknown;
/** The component's export: `export { tools } from "belljar-tool"`. */
export const tools: object;
/** Ends the instance; the tool's next call gets a fresh store. */
export function abort(message: string): never;

/** Lines for the operator's log. Never shown to the model; the host keeps a bounded number. */
export const log: Record<LogLevel, (message: unknown) => void>;
/** How far a long call has come, both numbers in the same unit. Display only. */
export function progress(done: number, total?: number, message?: string): void;
/** What the operator set for this tool. `tool.toml` names the keys. */
export function config(key: string): string | undefined;
/** Whether the operator granted this tool a secret of this name. Its value is never seen here. */
export function secretExists(name: string): boolean;
/** Random bytes, at most 65,536. */
export function randomBytes(count: number): Uint8Array;

/** Files. Paths are relative to the workspace; failures are errors of the contract. */
export const files: {
  /** The file's text; one that is no UTF-8 is an error. */
  read(path: string): string;
  readBytes(path: string): Uint8Array;
  /** Makes or replaces a file. */
  write(path: string, content: string | Uint8Array): void;
  append(path: string, content: string | Uint8Array): void;
  /** The entries of a directory, sorted by name. */
  list(path?: string): { name: string; isDirectory: boolean }[];
  exists(path: string): boolean;
  makeDirectory(path: string): void;
  rename(from: string, to: string): void;
  remove(path: string): void;
};

export interface Response {
  readonly status: number;
  /** Names in lower case, in the order in which they came. */
  readonly headers: [string, string][];
  readonly body: Uint8Array;
  text(): string;
  json(): unknown;
}
export interface RequestOptions {
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  /** For each of connecting, the first byte and the time between two; 30 without it. */
  timeoutSeconds?: number;
  /** Bytes of the answer's body; more is `too-large`; 8 MiB without it. */
  maxBody?: number;
}
/** HTTP requests, to the hosts that the operator granted. */
export const http: {
  get(url: string, options?: RequestOptions): Response;
  request(method: string, url: string, options?: RequestOptions): Response;
};

export interface Peer {
  readonly name: string;
  readonly description: string;
  /** A JSON schema of its arguments. */
  readonly schema: object;
  readonly readOnly: boolean;
  readonly idempotent: boolean;
  readonly openWorld: boolean;
}
/**
 * The other tools of the agent that this one works for. They are there when `tool.toml` asks for them
 * (`peers = true`) and the operator agrees; a call made here is a call of that agent.
 */
export const peers: {
  /** Those that can be called. */
  list(): Peer[];
  /** Calls one and waits for its answer; its error is thrown. */
  call(tool: string, args?: object): Output;
  /** Calls several at once; those that only read overlap. One result for each, in their order. */
  callMany(
    calls: [tool: string, args?: object][],
  ): ({ status: "fulfilled"; value: Output } | { status: "rejected"; reason: ToolError })[];
};

/** UTF-8 for engines without TextEncoder and TextDecoder; `strict` throws at what is none. */
export function encode(text: string): Uint8Array;
export function decode(bytes: Uint8Array, strict?: boolean): string;
