// `belljar serve` in a home of its own, which a test may stop, kill and start again.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { Model } from "./model.ts";

const ROOT = resolve(import.meta.dirname, "../../..");
const BINARY = process.env.BELLJAR_BIN ?? join(ROOT, "target/debug/belljar");
/** Components are compiled once for all tests. */
const CACHE = process.env.BELLJAR_CACHE ?? join(ROOT, "target/tmp/components");
/** How long something may take that takes no time. */
export const PATIENCE = 60_000;

export interface Plan {
  /** Files below the home. */
  home?: Record<string, string>;
  /** Files of the workspace. */
  workspace?: Record<string, string>;
  /** More of `[server]` in `belljar.toml`. */
  server?: string;
  /** Commands that are run before the server starts. */
  before?: (jar: Jar) => Promise<void>;
}

export interface Done {
  code: number;
  stdout: string;
  stderr: string;
}

export class Jar {
  readonly model: Model;
  readonly dir: string;
  /** What the server has printed since it was started last. */
  printed: string[] = [];
  log = "";
  private child: ChildProcess | undefined;
  private address = "";

  private constructor(model: Model, dir: string) {
    this.model = model;
    this.dir = dir;
  }

  static async start(plan: Plan = {}): Promise<Jar> {
    const jar = new Jar(await Model.start(), await mkdtemp(join(tmpdir(), "belljar-page-")));
    await mkdir(CACHE, { recursive: true, mode: 0o700 });
    await jar.homeFile("belljar.toml", settings(jar.model.url, plan.server ?? ""));
    for (const [path, text] of Object.entries({ ...AGENTS, ...plan.home })) await jar.homeFile(path, text);
    for (const [path, text] of Object.entries({ ...FILES, ...plan.workspace })) await jar.file(path, text);
    await plan.before?.(jar);
    await jar.serve();
    return jar;
  }

  /** Another server of the same home, at an address of its own. */
  async beside(): Promise<Jar> {
    const other = new Jar(this.model, this.dir);
    await other.serve();
    return other;
  }

  get home(): string {
    return join(this.dir, "home");
  }

  get workspace(): string {
    return join(this.dir, "workspace");
  }

  /** `http://127.0.0.1:PORT`. */
  get url(): string {
    return `http://${this.address}`;
  }

  /** The link that opens once, where the server printed one. */
  get link(): string | undefined {
    return this.printed.map((line) => /http:\/\/\S+\/login#once=\S+/.exec(line)?.[0]).find((link) => link);
  }

  async homeFile(path: string, text: string): Promise<void> {
    await put(join(this.home, path), text);
  }

  async file(path: string, text: string): Promise<void> {
    await put(join(this.workspace, path), text);
  }

  /** Starts the server, at its old address if it had one. */
  async serve(): Promise<void> {
    await this.started(BINARY, ["serve", "--listen", this.address || "127.0.0.1:0"]);
  }

  /** The same, where a person sees what it prints. */
  async serveAtTerminal(): Promise<void> {
    // `script` gives it a terminal; the shell's process becomes the server.
    const command = `echo "process $$"; exec "${BINARY}" serve --listen "${this.address || "127.0.0.1:0"}"`;
    await this.started("script", ["-qefc", command, "/dev/null"]);
  }

  private async started(program: string, args: string[]): Promise<void> {
    const child = spawn(program, args, { cwd: this.workspace, env: this.env(), stdio: ["ignore", "pipe", "pipe"] });
    this.child = child;
    this.printed = [];
    child.stderr.setEncoding("utf8").on("data", (text: string) => (this.log += text));
    const lines = createInterface({ input: child.stdout });
    await new Promise<void>((done, fail) => {
      lines.on("line", (line) => {
        this.printed.push(line);
        const at = /listening on http:\/\/(\S+)/.exec(line)?.[1];
        if (!at) return;
        this.address = at;
        done();
      });
      child.on("error", fail);
      child.on("exit", (code) => fail(new Error(`it ended with ${code}: ${this.log}`)));
    });
  }

  /** Kills the server as a crash does. */
  async kill(): Promise<void> {
    await this.end("SIGKILL");
  }

  /** Ends the server as an operator does. */
  async terminate(): Promise<void> {
    await this.end("SIGTERM");
  }

  async stop(): Promise<void> {
    await this.kill();
    await this.model.stop();
    await rm(this.dir, { recursive: true, force: true });
  }

  /** Runs a command beside the server. */
  async run(...args: string[]): Promise<Done> {
    return new Promise((done) => {
      const options = { cwd: this.workspace, env: this.env(), maxBuffer: 64 << 20 };
      execFile(BINARY, args, options, (error, stdout, stderr) => {
        const code = error ? (typeof error.code === "number" ? error.code : -1) : 0;
        done({ code, stdout, stderr });
      });
    });
  }

  /** The same, for what has to succeed; gives what it printed. */
  async does(...args: string[]): Promise<string> {
    const done = await this.run(...args);
    if (done.code !== 0) throw new Error(`belljar ${args.join(" ")}: ${done.code}: ${done.stdout}${done.stderr}`);
    return done.stdout.trim();
  }

  /** A key of a tenant. */
  async key(tenant: string, scope: "admin" | "member" | "read-only"): Promise<string> {
    return this.does("keys", "create", "--tenant", tenant, "--scope", scope, "--name", `${tenant}-${scope}`);
  }

  /** A call of the API; what is not JSON is given as text. */
  async api(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Reply> {
    const given: Record<string, string> = { ...headers };
    if (body !== undefined) given["content-type"] = "application/json";
    const init: RequestInit = { method, headers: given };
    if (body !== undefined) init.body = JSON.stringify(body);
    const answer = await fetch(this.url + path, init);
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, text, json: parsed(text) };
  }

  async get(path: string): Promise<any> {
    return this.good("GET", path);
  }

  async post(path: string, body: unknown): Promise<any> {
    return this.good("POST", path, body);
  }

  /** Says something to an agent, and waits for the end of the turn. */
  async chat(agent: string, text: string, session?: string): Promise<Turn> {
    const turn: Turn = await this.post("/v1/chat", session ? { session, text } : { agent, text });
    await this.idle(turn.session);
    return turn;
  }

  /** Says something to an agent, and gives the session once the turn has begun. */
  async begin(agent: string, text: string, session?: string): Promise<string> {
    const body = { ...(session ? { session } : { agent }), text, stream: true };
    const leave = new AbortController();
    const answer = await fetch(`${this.url}/v1/chat`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: leave.signal,
    });
    if (answer.status !== 200 || !answer.body) throw new Error(`${answer.status}: ${await answer.text()}`);
    let seen = "";
    const reader = answer.body.getReader();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      seen += Buffer.from(value).toString("utf8");
      const found = /"session":"([^"]+)"/.exec(seen)?.[1];
      if (!found) continue;
      leave.abort();
      return found;
    }
    throw new Error(`no session in ${seen}`);
  }

  /** Waits until a session has no turn that runs. */
  async idle(session: string): Promise<void> {
    const end = Date.now() + PATIENCE;
    while ((await this.get(`/v1/sessions/${session}`)).running) {
      if (Date.now() > end) throw new Error(`session ${session} runs for ever`);
      await new Promise((done) => setTimeout(done, 20));
    }
  }

  /** The changes of a session, once its last turn lets go of them. */
  async changes(session: string): Promise<any> {
    const end = Date.now() + PATIENCE;
    for (;;) {
      const reply = await this.api("GET", `/v1/sessions/${session}/changes`);
      if (reply.status === 200) return reply.json;
      if (reply.status !== 409 || Date.now() > end) throw new Error(`${reply.status}: ${reply.text}`);
      await new Promise((done) => setTimeout(done, 20));
    }
  }

  private async good(method: string, path: string, body?: unknown): Promise<any> {
    const reply = await this.api(method, path, body);
    if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.status}: ${reply.text}`);
    return reply.json;
  }

  private env(): NodeJS.ProcessEnv {
    return { PATH: process.env.PATH, TERM: "dumb", HOME: this.dir, BELLJAR_HOME: this.home, BELLJAR_CACHE: CACHE };
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    const child = this.child;
    this.child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    child.removeAllListeners("exit");
    const ended = once(child, "exit");
    const inner = this.printed.map((line) => /^process (\d+)/.exec(line)?.[1]).find((id) => id);
    process.kill(Number(inner ?? child.pid), signal);
    await ended;
  }
}

export interface Reply {
  status: number;
  headers: Headers;
  text: string;
  json: any;
}

export interface Turn {
  session: string;
  message: string;
  status: string;
  text: string;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}

function settings(model: string, server: string): string {
  return `
[server]
listen = "127.0.0.1:0"
${server}

[models.tide]
kind = "openai"
base_url = "${model}"
model = "tide-1"

[models.brook]
kind = "openai"
base_url = "${model}"
model = "brook-1"
context_tokens = 4096
max_output_tokens = 512

[roles]
main = "tide"
fast = "brook"
compaction = "tide"

[subagents]
max_depth = 2

[grants.keeper]
limits = { steps = 500 }

[grants.asker]
tools = { file_read = "allow", file_write = "ask" }

[grants.warden]
mounts = [{ path = "/workspace", access = "read-write" }]
`;
}

const agent = (name: string, description: string, more: string, body: string) =>
  `---\nname: ${name}\ndescription: ${description}\n${more}visibility: user-facing\n---\n${body}\n`;

/** The agents of every home. */
const AGENTS: Record<string, string> = {
  "agents/keeper.md": agent("keeper", "Keeps watch over the tide gauges.", "", "You keep watch over tide gauges."),
  "agents/scout.md": agent("scout", "Finds files.", "tools: [file_list, file_read, file_search]\n", "You find files."),
  "agents/writer.md": agent("writer", "Writes notes.", "tools: [file_read, file_write, file_edit, shell]\n", "You write notes."),
  "agents/asker.md": agent("asker", "Writes after asking.", "tools: [file_read, file_write]\n", "You ask first."),
  "agents/teller.md": agent("teller", "Tells.", "tools: []\n", "You tell."),
  "agents/courier.md": agent("courier", "Fetches pages.", "tools: [web_fetch]\nhosts: ['https://example.org']\n", "You fetch."),
  "agents/chief.md": agent("chief", "Has scouts sent out.", "", "You have scouts sent out."),
  "agents/scribe.md": agent("scribe", "Writes programs.", "tools: [run_javascript, file_read]\n", "You write programs."),
  "agents/warden.md": agent("warden", "Wards.", "tools: [file_read]\n", "You ward."),
  "agents/broken.md": "---\nname: broken\ndescription: Asks for what is not there.\ntools: [file_serch]\nvisibility: user-facing\n---\nYou look.\n",
};

/** The files of every workspace. */
const FILES: Record<string, string> = {
  "notes.md": "high water at 06:12\nlow water at 12:30\n",
  "stations/old-bridge.md": "datum 0.35 m\n",
  "stations/north-pier.md": "datum 1.10 m\n",
};
