/** The session that is shown: its rows, its events, its questions. */

import { signal, type Signal } from '@preact/signals';
import { api, got, type Of } from '../api/client';
import type { SessionEvent } from '../api/events';
import { Problem } from '../api/problem';
import { follow, type StreamState } from '../api/stream';
import { text } from '../text';
import { apply, emptySession, isRunning, type Session, type Turn } from './fold';
import { shortName, type SubagentRow } from './card';
import { announce } from './live';
import { lookQuestions } from './questions';
import { touchSessions } from './sessions';

export type MessageRow = Of<'MessageBody'>;
export type ReceiptRow = Of<'ReceiptBody'>;
export type AttachmentRow = Of<'AttachmentBody'>;

/** Milliseconds of work on events before the page may draw. */
const SLICE = 8;
/** Milliseconds after which an event is taken at once: one frame. */
const QUIET = 16;
/** Milliseconds after which changed rows are read. */
const SOON = 150;
/** Milliseconds after which it is looked again at what no event tells. */
const LATER = 1_000;
/** Most receipts that are read of a turn. */
const MAX_RECEIPTS = 5_000;

/** Receipts of one turn. */
export interface Receipts {
  rows: ReceiptRow[];
  byCall: Map<string, ReceiptRow>;
  cut: boolean;
}

/** One session that is open. `version` changes whenever anything of it does. */
export class OpenSession {
  readonly id: string;
  readonly version: Signal<number> = signal(0);
  readonly stream = signal<StreamState>({ state: 'connecting' });
  readonly problem = signal<Problem | undefined>(undefined);
  /** The events that were stored when the page came are taken. */
  readonly ready = signal(false);
  readonly about = signal<Of<'SessionBody'> | undefined>(undefined);
  readonly fold: Session = emptySession();
  messages: MessageRow[] = [];
  older: number | undefined;
  summary: Of<'SummaryBody'> | undefined;
  readonly subagents = new Map<string, Map<string, SubagentRow>>();
  readonly receipts = new Map<string, Receipts>();
  attachments: AttachmentRow[] = [];
  /** What was said here and is not among the rows yet. */
  said: string | undefined;
  /** The turn that nobody works on although it has not ended, and the event up to which that holds. */
  #left: { message: string; seen: number; sure: boolean } | undefined;
  #queue: SessionEvent[] = [];
  #frame = 0;
  /** When events were taken last. */
  #worked = 0;
  #quiet = 0;
  #timers = new Map<string, number>();
  #stop: () => void = () => {};
  #now: () => void = () => {};
  #closed = false;

  constructor(id: string) {
    this.id = id;
  }

  /** Reads the rows, then follows the events from the first. */
  start(): void {
    void this.#rows(true);
    const stream = follow(this.id, 0, (events) => this.#take(events), (state) => this.#say(state));
    this.#stop = stream.stop;
    this.#now = stream.now;
  }

  close(): void {
    this.#closed = true;
    this.#stop();
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#quiet);
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  /** Tries to connect now. */
  reconnect(): void {
    this.#now();
  }

  /** Reads everything of the store again. */
  refresh(): void {
    void this.#rows(false);
  }

  /** Looks whether the session is still there. */
  async check(): Promise<void> {
    try {
      await this.#about();
    } catch (error) {
      const problem = Problem.of(error);
      if (problem.status === 404) this.problem.value = problem;
    }
  }

  turn(message: string): Turn | undefined {
    return this.fold.turns.get(message);
  }

  #changed(): void {
    this.version.value += 1;
  }

  #say(state: StreamState): void {
    const before = this.stream.peek();
    this.stream.value = state;
    if (state.state === 'gone') {
      this.problem.value = state.problem;
    } else if (state.state === 'retry' && before.state !== 'retry' && before.state !== 'connecting') {
      announce(text.problems.offline);
    } else if (state.state === 'open') {
      // A server that was restarted may have changed rows without an event.
      if (this.ready.peek()) this.#soon('rows', () => this.#rows(false));
      this.#settle();
    }
  }

  /** After a moment without events, all that was stored has come. */
  #settle(): void {
    clearTimeout(this.#quiet);
    this.#quiet = window.setTimeout(() => {
      if (this.#queue.length > 0) return this.#settle();
      this.ready.value = true;
      this.#soon('untold', () => this.#untold());
      if (this.running()) this.#soon('about', () => this.#about());
    }, 120);
  }

  #take(events: SessionEvent[]): void {
    for (const event of events) this.#queue.push(event);
    // The first one for a while is shown by the frame that comes next; of many, one frame has as many as
    // it can.
    if (!this.#frame && performance.now() - this.#worked > QUIET) this.#work();
    else if (!this.#frame) this.#frame = requestAnimationFrame(() => this.#work());
    if (!this.ready.peek()) this.#settle();
  }

  #work(): void {
    this.#frame = 0;
    const until = performance.now() + SLICE;
    let at = 0;
    for (; at < this.#queue.length; at += 1) {
      const event = this.#queue[at];
      if (!event) break;
      apply(this.fold, event);
      this.#note(event);
      if ((at & 63) === 63 && performance.now() > until) {
        at += 1;
        break;
      }
    }
    this.#queue = this.#queue.slice(at);
    if (this.#queue.length > 0) this.#frame = requestAnimationFrame(() => this.#work());
    this.#worked = performance.now();
    this.#changed();
  }

  /** What an event says about the rows. */
  #note(event: SessionEvent): void {
    const live = this.ready.peek();
    if (!this.messages.some((row) => row.id === event.message)) this.#soon('messages', () => this.#messages());
    switch (event.type) {
      case 'subagent_batch_start':
        this.#soon(`subagents ${event.message}`, () => this.#subagents(event.message));
        break;
      case 'subagent_done':
        this.#soon(`subagents ${event.message}`, () => this.#subagents(event.message));
        if (live) announce(text.card.spoken(shortName(event.child), text.status[event.status]));
        break;
      case 'tool_call_finished':
        if (this.receipts.has(event.message)) this.#soon(`receipts ${event.message}`, () => this.readReceipts(event.message, true));
        break;
      case 'permission_asked':
      case 'permission_answered':
      case 'question_asked':
      case 'question_answered':
        if (live) lookQuestions();
        break;
      case 'run_finished':
        if (live) {
          announce(`${event.agent}: ${text.status[event.status]}`);
          lookQuestions();
          touchSessions();
        }
        this.#soon('messages', () => this.#messages());
        this.#soon('about', () => this.#about());
        this.#soon('attachments', () => this.#attachments());
        if (this.subagents.has(event.message)) this.#soon(`subagents ${event.message}`, () => this.#subagents(event.message));
        if (this.receipts.has(event.message)) this.#soon(`receipts ${event.message}`, () => this.readReceipts(event.message, true));
        break;
      case 'run_started':
        if (live) touchSessions();
        break;
      default:
    }
  }

  #soon(name: string, work: () => Promise<void>, after = SOON): void {
    if (this.#timers.has(name) || this.#closed) return;
    const timer = window.setTimeout(() => {
      this.#timers.delete(name);
      // What could not be read stays as it was; the stream says that the server is away.
      work().catch((error: unknown) => void (Problem.of(error).status === 404 && this.check()));
    }, after);
    this.#timers.set(name, timer);
  }

  async #rows(first: boolean): Promise<void> {
    try {
      await Promise.all([this.#about(), this.#messages(), this.#attachments()]);
      if (this.#closed || first) return;
      for (const message of this.subagents.keys()) await this.#subagents(message);
      for (const message of this.receipts.keys()) await this.readReceipts(message, true);
    } catch (error) {
      const problem = Problem.of(error);
      if (problem.passes || problem.status === 429) this.#soon('rows', () => this.#rows(first), (problem.after ?? 2) * LATER);
      else if (problem.status !== 401) this.problem.value = problem;
    }
  }

  /** The subagents of the last turns whose events are not kept, of which only their rows tell. */
  async #untold(): Promise<void> {
    const told = (message: string) => this.fold.turns.has(message) || this.subagents.has(message);
    const last = this.messages.filter((row) => row.role === 'assistant').slice(-20);
    for (const row of last) if (!told(row.id)) await this.#subagents(row.id);
  }

  async #about(): Promise<void> {
    const about = await got(api.GET('/v1/sessions/{id}', { params: { path: { id: this.id } } }));
    this.about.value = about;
    // It may have been read in the moment in which its turn ended, of which no event follows.
    const running = this.running();
    if (about.running && !running) this.#soon('about', () => this.#about(), LATER);
    if (about.running || !running) return;
    // Its end may be on its way, so it is looked at twice.
    const { seen } = this.fold;
    const sure = this.#left?.seen === seen;
    this.#left = { message: running.message, seen, sure };
    if (sure) this.#changed();
    else this.#soon('about', () => this.#about(), LATER);
  }

  async #messages(): Promise<void> {
    const page = await got(api.GET('/v1/sessions/{id}/messages', { params: { path: { id: this.id }, query: { limit: 200 } } }));
    const known = new Set(page.messages.map((row) => row.id));
    const first = page.messages[0]?.place ?? 0;
    this.messages = [...this.messages.filter((row) => row.place < first && !known.has(row.id)), ...page.messages];
    this.older = this.messages[0] === page.messages[0] ? (page.next ?? undefined) : this.older;
    this.summary = page.summary ?? undefined;
    if (this.said !== undefined && page.messages.some((row) => row.role === 'user' && row.text === this.said)) this.said = undefined;
    this.#changed();
  }

  /** Reads messages before those that are there. */
  async readOlder(): Promise<void> {
    if (this.older === undefined) return;
    const query = { limit: 200, before: this.older };
    const page = await got(api.GET('/v1/sessions/{id}/messages', { params: { path: { id: this.id }, query } }));
    const known = new Set(this.messages.map((row) => row.id));
    this.messages = [...page.messages.filter((row) => !known.has(row.id)), ...this.messages];
    this.older = page.next ?? undefined;
    for (const row of page.messages) if (row.role === 'assistant') await this.#subagents(row.id);
    this.#changed();
  }

  async #subagents(message: string): Promise<void> {
    const rows = new Map<string, SubagentRow>();
    let after: string | undefined;
    do {
      const query = { message, limit: 200, ...(after !== undefined && { after }) };
      const page = await got(api.GET('/v1/sessions/{id}/subagents', { params: { path: { id: this.id }, query } }));
      for (const row of page.subagents) rows.set(pathOf(row), row);
      after = page.next ?? undefined;
    } while (after !== undefined && rows.size < 2_000);
    this.subagents.set(message, rows);
    this.#changed();
  }

  async #attachments(): Promise<void> {
    const list = await got(api.GET('/v1/sessions/{id}/attachments', { params: { path: { id: this.id } } }));
    this.attachments = list.attachments;
    this.#changed();
  }

  /** The receipts of a turn; read when they are first looked at. */
  async readReceipts(message: string, again = false): Promise<void> {
    if (this.receipts.has(message) && !again) return;
    const { rows, cut } = await allReceipts(this.id, message);
    const byCall = new Map(rows.map((row) => [`${row.agent} ${row.step} ${row.call_id}`, row]));
    this.receipts.set(message, { rows, byCall, cut });
    this.#changed();
  }

  /** The turn that runs now. */
  running(): Turn | undefined {
    return [...this.fold.turns.values()].findLast((turn) => isRunning(turn) && this.status(turn.message) === 'running');
  }

  /** How a turn is: the events say it, and where they do not, the row. */
  status(message: string): 'running' | 'completed' | 'partial' | 'failed' | 'cancelled' | 'interrupted' {
    const turn = this.fold.turns.get(message);
    if (turn && !isRunning(turn)) return turn.root.state as 'completed';
    const row = this.messages.find((one) => one.id === message);
    if (!row || row.status === 'in_flight') {
      const left = this.#left?.sure && this.#left.message === message && this.#left.seen === this.fold.seen;
      return left && !this.about.peek()?.running ? 'interrupted' : 'running';
    }
    return row.status as 'completed';
  }
}

/** All receipts of a turn, the oldest first. */
export async function allReceipts(session: string, message: string): Promise<{ rows: ReceiptRow[]; cut: boolean }> {
  let rows: ReceiptRow[] = [];
  let before: string | undefined;
  do {
    const query = { message, limit: 200, ...(before !== undefined && { before }) };
    const page = await got(api.GET('/v1/sessions/{id}/receipts', { params: { path: { id: session }, query } }));
    // Text is what `format=csv` gives.
    if (typeof page === 'string') break;
    rows = [...page.receipts, ...rows];
    before = page.next ?? undefined;
  } while (before !== undefined && rows.length < MAX_RECEIPTS);
  return { rows, cut: before !== undefined };
}

/** Where a subagent stands in its run. */
export function pathOf(row: SubagentRow): string {
  const path = (row.result as { path?: unknown } | null)?.path;
  return typeof path === 'string' ? path : row.display_name;
}
