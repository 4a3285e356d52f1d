// Write tools for belljar in AssemblyScript: see README.md.

export { files } from "./files";
export { http, Response } from "./http";
export {
  config, environmentSize, Level, log, monotonicNanoseconds, print, printError, progress, randomBytes, secretExists,
  wallMilliseconds,
} from "./host";
export { JsonObject, listOf, listOfTexts, parse, quoted, Type, Value } from "./json";
export { Kind, kindWord, Output, Part } from "./output";
export { Peer, peers, Request } from "./peers";
export { Args, Tool, tool } from "./tool";
