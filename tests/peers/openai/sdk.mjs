// OpenAI's package for JavaScript, against `belljar serve`.

import assert from "node:assert/strict";
import OpenAI from "openai";

const { BELLJAR_URL: baseURL, BELLJAR_KEY: apiKey, BELLJAR_READER: reader } = process.env;
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });

const said = "High water is at 06:12.";
const messages = () => [{ role: "user", content: "When is high water?" }];
const definition = {
  name: "get_tide",
  description: "When high water is.",
  parameters: {
    type: "object",
    properties: { port: { type: "string" } },
    required: ["port"],
    additionalProperties: false,
  },
};
const ofChat = { type: "function", function: definition };
const ofResponses = { type: "function", strict: true, ...definition };

async function fails(kind, code, promise) {
  const error = await promise.then(
    () => assert.fail(`no ${kind.name}`),
    (error) => error,
  );
  assert.ok(error instanceof kind, String(error));
  assert.equal(error.code, code);
  return error;
}

async function models() {
  const names = [];
  for await (const model of client.models.list()) names.push(model.id);
  assert.ok(names.includes("js-clerk"), names.join());
}

async function chat() {
  const { data, response } = await client.chat.completions
    .create({ model: "js-clerk", messages: messages() })
    .withResponse();
  assert.equal(data.choices[0].message.content, said);
  assert.equal(data.usage.prompt_tokens_details.cached_tokens, 8);
  assert.equal(data.id, `chatcmpl-${response.headers.get("x-belljar-run")}`);
}

async function chatStreamed() {
  const stream = await client.chat.completions.create({
    model: "js-clerk",
    messages: messages(),
    stream: true,
    stream_options: { include_usage: true },
  });
  let text = "";
  let usage;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? "";
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, said);
  assert.equal(usage.total_tokens, 27);
}

async function chatTools() {
  const asked = { model: "js-tools", messages: messages(), tools: [ofChat] };
  const stream = client.chat.completions.stream(asked);
  const message = (await stream.finalChatCompletion()).choices[0].message;
  const call = message.tool_calls[0];
  assert.equal(call.function.arguments, '{"port":"Brest"}');
  const result = { role: "tool", tool_call_id: call.id, content: "06:12" };
  const next = [...messages(), message, result];
  const told = await client.chat.completions.create({ ...asked, messages: next });
  assert.equal(told.choices[0].message.content, said);
}

async function responses() {
  const first = await client.responses.create({ model: "js-clerk", input: "When?" });
  assert.equal(first.output_text, said);
  const next = await client.responses.create({
    model: "js-clerk",
    input: "And then?",
    previous_response_id: first.id,
  });
  assert.equal((await client.responses.retrieve(next.id)).previous_response_id, first.id);
  const items = await client.responses.inputItems.list(next.id);
  assert.equal(items.data[0].content[0].text, "And then?");
  await fails(OpenAI.APIError, "conflict", client.responses.delete(first.id));
  await client.responses.delete(next.id);
  await fails(OpenAI.NotFoundError, "not_found", client.responses.retrieve(next.id));
}

async function responsesStreamed() {
  const stream = client.responses.stream({ model: "js-clerk", input: "When?" });
  const kinds = [];
  for await (const event of stream) kinds.push(event.type);
  assert.equal(kinds.at(-1), "response.completed");
  assert.equal((await stream.finalResponse()).output_text, said);
}

async function responsesTools() {
  const asked = { model: "js-tools", tools: [ofResponses] };
  const stream = client.responses.stream({ ...asked, input: "When?" });
  const called = await stream.finalResponse();
  const call = called.output.at(-1);
  assert.equal(call.type, "function_call");
  const output = { type: "function_call_output", call_id: call.call_id, output: "06:12" };
  const previous_response_id = called.id;
  const told = await client.responses.create({ ...asked, previous_response_id, input: [output] });
  assert.equal(told.output_text, said);
}

async function background() {
  const slow = await client.responses.create({
    model: "js-slow",
    input: "When?",
    background: true,
  });
  assert.equal(slow.status, "in_progress");
  assert.equal((await client.responses.retrieve(slow.id)).status, "in_progress");
  assert.equal((await client.responses.cancel(slow.id)).status, "cancelled");
}

async function errors() {
  const create = (more) =>
    client.chat.completions.create({ model: "js-clerk", messages: messages(), ...more });
  await fails(OpenAI.NotFoundError, "model_not_found", create({ model: "gpt-5" }));
  const elsewhere = { model: "js-clerk", input: "x", conversation: "conv_elsewhere" };
  const made = client.responses.create(elsewhere);
  const error = await fails(OpenAI.BadRequestError, "unsupported_parameter", made);
  assert.equal(error.param, "conversation");
  const stranger = new OpenAI({ baseURL, apiKey: "bj_no", maxRetries: 0 });
  const asked = { model: "js-clerk", input: "x" };
  await fails(OpenAI.AuthenticationError, "invalid_api_key", stranger.responses.create(asked));
  const looks = new OpenAI({ baseURL, apiKey: reader, maxRetries: 0 });
  await fails(OpenAI.PermissionDeniedError, "permission_denied", looks.responses.create(asked));
}

const checks = {
  models,
  chat,
  "chat, streamed": chatStreamed,
  "chat with tools, streamed": chatTools,
  responses,
  "responses, streamed": responsesStreamed,
  "responses with tools, streamed": responsesTools,
  background,
  errors,
};
for (const [name, check] of Object.entries(checks)) {
  await check();
  console.log(`javascript ${process.version}: ${name}`);
}
