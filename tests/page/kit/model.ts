// A model that says what a test tells it to, when the test tells it to. It speaks the protocol of
// OpenAI-compatible servers, so belljar reaches it as it reaches any other, and it outlives a belljar that
// is killed.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A moment that a test decides about. */
export class Gate {
  readonly opened: Promise<void>;
  /** How many answers of the model have come to this gate. */
  private reached = 0;
  private waiters: (() => void)[] = [];
  private release: () => void = () => undefined;

  constructor() {
    this.opened = new Promise((done) => (this.release = done));
  }

  open(): void {
    this.release();
  }

  arrive(): void {
    this.reached += 1;
    for (const done of this.waiters.splice(0)) done();
  }

  /** Waits until so many answers wait here. */
  async waited(by = 1): Promise<void> {
    while (this.reached < by) await new Promise<void>((done) => this.waiters.push(done));
  }
}

/** A tool call that the model asks for. */
export interface Call {
  name: string;
  arguments: unknown;
}

/** One answer of the model. */
export interface Answer {
  /** The pieces that are streamed; at a gate it waits. */
  say?: string | (string | Gate)[];
  calls?: Call[];
  usage?: { input: number; output: number };
  /** An HTTP status in place of an answer. */
  fail?: number;
}

interface ChatMessage {
  role: string;
  content?: unknown;
}

interface ChatRequest {
  messages: ChatMessage[];
  tools?: { function: { name: string } }[];
}

/** What the model was sent, for tests of what was sent. */
export interface Sent {
  task: string;
  request: ChatRequest;
}

export class Model {
  readonly sent: Sent[] = [];
  private readonly scripts = new Map<string, Answer[]>();
  private readonly server: Server;

  private constructor() {
    this.server = createServer((request, response) => {
      void this.serve(request, response).catch(() => response.destroy());
    });
  }

  static async start(): Promise<Model> {
    const model = new Model();
    await new Promise<void>((done) => model.server.listen(0, "127.0.0.1", done));
    return model;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/v1`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  /** How the model answers whoever is told exactly `task`, step by step. */
  play(task: string, ...answers: Answer[]): void {
    this.scripts.set(task, answers);
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (request.method !== "POST") {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ object: "list", data: [{ id: "tide-1", object: "model" }] }));
      return;
    }
    const chat = JSON.parse(Buffer.concat(chunks).toString("utf8")) as ChatRequest;
    const { task, step } = this.place(chat);
    this.sent.push({ task, request: chat });
    const script = this.scripts.get(task);
    const answer = script ? (script[step] ?? { say: "There is nothing more to say." }) : { say: `Noted: ${task}` };
    await write(response, answer, step);
  }

  /** Whose turn it is, and how many answers it has had. */
  private place(chat: ChatRequest): { task: string; step: number } {
    let step = 0;
    let last = "";
    for (const message of [...chat.messages].reverse()) {
      if (message.role === "assistant") step += 1;
      if (message.role !== "user") continue;
      const text = bare(textOf(message.content));
      last ||= text;
      if (this.scripts.has(text)) return { task: text, step };
      // What the host adds in the middle of a turn is no task.
      if (step === 0) continue;
      return { task: text, step };
    }
    return { task: last, step };
  }
}

/** The task in what a subagent is sent first. */
function bare(text: string): string {
  const framed = /^Context:\n[\s\S]*?\n\nTask:\n/.exec(text);
  return framed ? text.slice(framed[0].length) : text;
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => (part as { text?: string }).text ?? "").join("");
}

async function write(response: ServerResponse, answer: Answer, step: number): Promise<void> {
  if (answer.fail) {
    response.statusCode = answer.fail;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ error: { message: "the tide is out", type: "scripted" } }));
    return;
  }
  response.setHeader("content-type", "text/event-stream");
  const send = (data: unknown) => response.write(`data: ${JSON.stringify(data)}\n\n`);
  const delta = (part: unknown, finish: string | null = null) =>
    send({ id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta: part, finish_reason: finish }] });
  delta({ role: "assistant" });
  for (const piece of typeof answer.say === "string" ? [answer.say] : (answer.say ?? [])) {
    if (typeof piece === "string") {
      delta({ content: piece });
      continue;
    }
    piece.arrive();
    await piece.opened;
  }
  const calls = answer.calls ?? [];
  calls.forEach((call, index) => {
    const text = typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments);
    const asked = { index, id: `call_${step + 1}_${index + 1}`, type: "function", function: { name: call.name, arguments: text } };
    delta({ tool_calls: [asked] });
  });
  delta({}, calls.length > 0 ? "tool_calls" : "stop");
  const { input, output } = answer.usage ?? { input: 120, output: 30 };
  send({ id: "c", object: "chat.completion.chunk", choices: [], usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output } });
  response.end("data: [DONE]\n\n");
}
