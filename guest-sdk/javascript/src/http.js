// HTTP requests, to the hosts that the operator granted. Redirects are answers like any other.
//
// The version 0.9.8 stands for 0.2.8 until `belljar tools build` has the component: the engine is
// started once while it is made, and knows streams, but no HTTP, of any version that it could take
// for its own.

import { handle } from "wasi:http/outgoing-handler@0.9.8";
import { Fields, OutgoingBody, OutgoingRequest, RequestOptions } from "wasi:http/types@0.9.8";

import { denied, failed, invalidArguments, payload, tagOf, tooLarge, ToolError } from "./errors.js";
import { decode, encode } from "./utf8.js";

const METHODS = ["get", "head", "post", "put", "delete", "connect", "options", "trace", "patch"];
const WRITE = 4096;
const READ = 64 * 1024;

export const http = {
  get: (url, options = {}) => http.request("GET", url, options),

  request(method, url, { headers = {}, body, timeoutSeconds = 30, maxBody = 8 << 20 } = {}) {
    const parts = /^(https?):\/\/([^/?#]+)([^#]*)/.exec(url);
    if (!parts) throw invalidArguments(`\`${url}\` is no http or https URL`);
    const [, scheme, host, rest] = parts;
    const bytes = typeof body === "string" ? encode(body) : body;
    try {
      const request = outgoing(method, scheme, host, rest, headers, bytes);
      return send(request, bytes, timeoutSeconds, maxBody);
    } catch (thrown) {
      throw thrown instanceof ToolError ? thrown : explain(payload(thrown), host);
    }
  },
};

function outgoing(method, scheme, host, rest, headers, bytes) {
  const pairs = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), encode(value)]);
  if (bytes !== undefined) pairs.push(["content-length", encode(String(bytes.length))]);
  const request = new OutgoingRequest(Fields.fromList(pairs));
  const name = method.toLowerCase();
  request.setMethod(METHODS.includes(name) ? { tag: name } : { tag: "other", val: method });
  request.setScheme({ tag: scheme === "https" ? "HTTPS" : "HTTP" });
  request.setAuthority(host);
  request.setPathWithQuery(rest.startsWith("/") ? rest : `/${rest}`);
  return request;
}

function send(request, bytes, timeoutSeconds, maxBody) {
  const nanoseconds = Math.round(timeoutSeconds * 1e9);
  const options = new RequestOptions();
  options.setConnectTimeout(nanoseconds);
  options.setFirstByteTimeout(nanoseconds);
  options.setBetweenBytesTimeout(nanoseconds);
  const sink = request.body();
  const future = handle(request, options);
  if (bytes !== undefined && bytes.length > 0) {
    const stream = sink.write();
    for (let at = 0; at < bytes.length; at += WRITE)
      stream.blockingWriteAndFlush(bytes.subarray(at, at + WRITE));
    stream[Symbol.dispose]?.();
  }
  OutgoingBody.finish(sink, undefined);
  future.subscribe().block();
  let answer = future.get();
  while (answer && typeof answer === "object" && "tag" in answer) {
    if (answer.tag === "err") throw answer.val;
    answer = answer.val;
  }
  const fields = answer.headers().entries();
  const headers = fields.map(([name, value]) => [name.toLowerCase(), decode(value)]);
  const body = readAll(answer.consume(), maxBody);
  return {
    status: answer.status(),
    headers,
    body,
    text: () => decode(body),
    json: () => JSON.parse(decode(body)),
  };
}

function readAll(body, maxBody) {
  const stream = body.stream();
  const chunks = [];
  let size = 0;
  for (;;) {
    let chunk;
    try {
      chunk = stream.blockingRead(READ);
    } catch (thrown) {
      if (tagOf(payload(thrown)) === "closed") break;
      throw thrown;
    }
    size += chunk.length;
    if (size > maxBody) throw tooLarge(`the response has more than ${maxBody} bytes`);
    chunks.push(chunk);
  }
  stream[Symbol.dispose]?.();
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

function explain(code, host) {
  const tag = tagOf(code);
  switch (tag) {
    case "HTTP-request-denied":
      return denied(`requests to \`${host}\` are not allowed`);
    case "destination-IP-prohibited":
      return denied(`the address of \`${host}\` is not allowed`);
    case "HTTP-response-body-size":
    case "HTTP-response-header-section-size":
      return tooLarge(`the response of \`${host}\` is larger than allowed`);
    default:
      return failed(`the exchange with \`${host}\` failed: ${tag.replaceAll("-", " ")}`);
  }
}
