// Requests through the host, to the hosts that the operator granted. The host joins secrets, which are
// never seen here. What fails gives null, and `http.error()` says why, as a tool can answer it.

import { lastLength, lendText, slot, takeBytes } from "./memory";
import { Output } from "./output";

@external("wasi:http/types@0.2.12", "[constructor]fields") declare function newFields(): i32;
@external("wasi:http/types@0.2.12", "[method]fields.append")
declare function fieldsAppend(self: i32, name: usize, nameLength: usize, value: usize, length: usize, into: usize): void;
@external("wasi:http/types@0.2.12", "[constructor]outgoing-request") declare function newRequest(headers: i32): i32;
@external("wasi:http/types@0.2.12", "[method]outgoing-request.set-method")
declare function setMethod(self: i32, tag: i32, name: usize, length: usize): i32;
@external("wasi:http/types@0.2.12", "[method]outgoing-request.set-scheme")
declare function setScheme(self: i32, some: i32, tag: i32, name: usize, length: usize): i32;
@external("wasi:http/types@0.2.12", "[method]outgoing-request.set-authority")
declare function setAuthority(self: i32, some: i32, text: usize, length: usize): i32;
@external("wasi:http/types@0.2.12", "[method]outgoing-request.set-path-with-query")
declare function setPath(self: i32, some: i32, text: usize, length: usize): i32;
@external("wasi:http/types@0.2.12", "[method]outgoing-request.body") declare function requestBody(self: i32, into: usize): void;
@external("wasi:http/types@0.2.12", "[method]outgoing-body.write") declare function bodyWrite(self: i32, into: usize): void;
@external("wasi:http/types@0.2.12", "[static]outgoing-body.finish")
declare function bodyFinish(self: i32, some: i32, trailers: i32, into: usize): void;
@external("wasi:http/types@0.2.12", "[method]future-incoming-response.subscribe") declare function futureSubscribe(self: i32): i32;
@external("wasi:http/types@0.2.12", "[method]future-incoming-response.get") declare function futureGet(self: i32, into: usize): void;
@external("wasi:http/types@0.2.12", "[resource-drop]future-incoming-response") declare function dropFuture(self: i32): void;
@external("wasi:http/types@0.2.12", "[method]incoming-response.status") declare function responseStatus(self: i32): i32;
@external("wasi:http/types@0.2.12", "[method]incoming-response.consume") declare function responseConsume(self: i32, into: usize): void;
@external("wasi:http/types@0.2.12", "[resource-drop]incoming-response") declare function dropResponse(self: i32): void;
@external("wasi:http/types@0.2.12", "[method]incoming-body.stream") declare function bodyStream(self: i32, into: usize): void;
@external("wasi:http/types@0.2.12", "[resource-drop]incoming-body") declare function dropBody(self: i32): void;
@external("wasi:http/outgoing-handler@0.2.12", "handle")
declare function handle(request: i32, some: i32, options: i32, into: usize): void;
@external("wasi:io/poll@0.2.12", "[method]pollable.block") declare function pollableBlock(self: i32): void;
@external("wasi:io/poll@0.2.12", "[resource-drop]pollable") declare function dropPollable(self: i32): void;
@external("wasi:io/streams@0.2.12", "[method]input-stream.blocking-read")
declare function streamRead(self: i32, length: u64, into: usize): void;
@external("wasi:io/streams@0.2.12", "[method]output-stream.blocking-write-and-flush")
declare function streamWrite(self: i32, data: usize, length: usize, into: usize): void;
@external("wasi:io/streams@0.2.12", "[resource-drop]input-stream") declare function dropInput(self: i32): void;
@external("wasi:io/streams@0.2.12", "[resource-drop]output-stream") declare function dropOutput(self: i32): void;

const METHODS: string[] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
const CHUNK: usize = 4096;

// An answer, read whole, whatever its status; a redirect is one too.
export class Response {
  constructor(readonly status: i32, readonly body: Uint8Array) {}
  get text(): string { return String.UTF8.decode(this.body.buffer); }
}

let failure: Output | null = null;

function refuse(output: Output): Response | null {
  failure = output;
  return null;
}

// The contract's error for a code of wasi:http.
function refusal(code: u8, host: string): Response | null {
  const shown = "`" + host + "`";
  if (code == 15) return refuse(Output.denied("requests to " + shown + " are not allowed"));
  if (code == 4) return refuse(Output.denied("the address of " + shown + " is not allowed"));
  if (code == 26 || code == 28) return refuse(Output.tooLarge("the response of " + shown + " is larger than allowed"));
  return refuse(Output.failed("the exchange with " + shown + " failed (wasi:http error " + code.toString() + ")"));
}

function field(fields: i32, name: string, value: string): void {
  const text = lendText(name), length = lastLength, held = lendText(value);
  fieldsAppend(fields, text, length, held, lastLength, slot);
}

// A request's handle; -1 = it cannot be made.
function prepared(method: string, url: string, host: string, path: string, headers: string[], length: i32): i32 {
  const fields = newFields();
  for (let at = 0; at + 1 < headers.length; at += 2) field(fields, headers[at], headers[at + 1]);
  if (length >= 0) field(fields, "content-length", length.toString());
  const request = newRequest(fields);
  let tag = METHODS.indexOf(method);
  if (tag < 0) tag = METHODS.length;
  let text = lendText(method);
  let bad = setMethod(request, tag, text, lastLength) | setScheme(request, 1, url.startsWith("https:") ? 1 : 0, 0, 0);
  text = lendText(host);
  bad |= setAuthority(request, 1, text, lastLength);
  text = lendText(path);
  bad |= setPath(request, 1, text, lastLength);
  return bad != 0 || host == "" ? -1 : request;
}

function readAll(response: i32): Uint8Array | null {
  responseConsume(response, slot);
  const body = load<i32>(slot, 4), chunks: Uint8Array[] = [];
  bodyStream(body, slot);
  const stream = load<i32>(slot, 4);
  let size = 0;
  for (;;) {
    streamRead(stream, 65536, slot);
    if (load<u8>(slot) != 0) break;
    const chunk = takeBytes(slot + 4);
    chunks.push(chunk);
    size += chunk.length;
  }
  const whole = load<u8>(slot, 4) == 1;
  dropInput(stream);
  dropBody(body);
  if (!whole) return null;
  const all = new Uint8Array(size);
  for (let at = 0, begin = 0; at < chunks.length; begin += chunks[at++].length) all.set(chunks[at], begin);
  return all;
}

export namespace http {
  // Why the last of these failed.
  export function error(): Output {
    return failure === null ? Output.failed("nothing failed") : failure!;
  }

  // Asks for what is at a URL.
  export function get(url: string): Response | null { return request("GET", url); }

  // Sends a request; `headers` are names and values in turn.
  export function request(method: string, url: string, body: string | null = null, headers: string[] = []): Response | null {
    const begin = url.startsWith("https://") ? 8 : url.startsWith("http://") ? 7 : -1;
    if (begin < 0) return refuse(Output.invalidArguments("`" + url + "` cannot be requested"));
    let rest = url.substring(begin).split("#")[0];
    let end = rest.length;
    for (let at = 0; at < rest.length; at++) {
      const code = rest.charCodeAt(at);
      if (code != 47 && code != 63) continue;
      end = at;
      break;
    }
    const host = rest.substring(0, end);
    rest = rest.substring(end);
    const path = rest.startsWith("/") ? rest : "/" + rest;
    const bytes: ArrayBuffer = body === null ? new ArrayBuffer(0) : String.UTF8.encode(body);
    const outgoing = prepared(method, url, host, path, headers, body === null ? -1 : bytes.byteLength);
    if (outgoing < 0) return refuse(Output.invalidArguments("`" + url + "` cannot be requested"));
    requestBody(outgoing, slot);
    const sink = load<i32>(slot, 4);
    handle(outgoing, 0, 0, slot);
    if (load<u8>(slot) != 0) return refusal(load<u8>(slot, 8), host);
    const future = load<i32>(slot, 8);
    if (bytes.byteLength > 0) {
      bodyWrite(sink, slot);
      const stream = load<i32>(slot, 4), data = changetype<usize>(bytes), length = <usize>bytes.byteLength;
      for (let at: usize = 0; at < length; at += CHUNK) {
        streamWrite(stream, data + at, min(length - at, CHUNK), slot);
        if (load<u8>(slot) != 0) return refuse(Output.failed("`" + host + "` did not take the request"));
      }
      dropOutput(stream);
    }
    bodyFinish(sink, 0, 0, slot);
    if (load<u8>(slot) != 0) return refusal(load<u8>(slot, 8), host);
    const ready = futureSubscribe(future);
    pollableBlock(ready);
    dropPollable(ready);
    futureGet(future, slot);
    if (load<u8>(slot) == 0 || load<u8>(slot, 8) != 0) return refuse(Output.failed("`" + host + "` gave no answer"));
    if (load<u8>(slot, 16) != 0) return refusal(load<u8>(slot, 24), host);
    const response = load<i32>(slot, 24), status = responseStatus(response), content = readAll(response);
    dropResponse(response);
    dropFuture(future);
    if (content === null) return refuse(Output.failed("the response of `" + host + "` broke off"));
    return new Response(status, content);
  }
}
