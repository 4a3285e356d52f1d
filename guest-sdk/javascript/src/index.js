// Write tools for belljar: see README.md. The types are in index.d.ts.

import "./console.js";

export { ToolError, invalidArguments, notFound, denied, tooLarge, failed } from "./errors.js";
export { files } from "./files.js";
export { http } from "./http.js";
export { config, log, progress, randomBytes, secretExists } from "./host.js";
export { attachment, json, output, text } from "./output.js";
export { peers } from "./peers.js";
export { t } from "./schema.js";
export { abort, tool, tools } from "./tools.js";
export { decode, encode } from "./utf8.js";
