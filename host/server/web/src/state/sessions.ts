/** The list of sessions, and the words that narrow it. */

import { computed, signal } from '@preact/signals';
import { send, type Of } from '../api/client';
import { Problem } from '../api/problem';
import { me } from './me';

export type SessionRow = Of<'SessionBody'>;

export interface Narrowed {
  q: string;
  kind: string;
  which: 'all' | 'running' | 'waiting';
}

export const narrowed = signal<Narrowed>({ q: '', kind: '', which: 'all' });
export const sessions = signal<readonly SessionRow[]>([]);
export const more = signal<string | undefined>(undefined);
export const sessionsProblem = signal<Problem | undefined>(undefined);
export const listed = signal(false);
export const runningNow = computed(() => sessions.value.filter((row) => row.running).length);

const EVERY = 5_000;
const PAGE = 50;
let timer = 0;
/** What reads the newest ones, and what reads older ones: neither ends the other. */
let looking: AbortController | undefined;
let reading: AbortController | undefined;

async function page(abort: AbortController, before?: string): Promise<{ sessions: SessionRow[]; next?: string }> {
  const { q, kind, which } = narrowed.peek();
  const query = new URLSearchParams({ limit: String(PAGE) });
  if (q.trim()) query.set('q', q.trim());
  if (kind) query.set('kind', kind);
  // Whoever waits for a person runs; which of them do is known by their questions.
  if (which !== 'all') query.set('running', 'true');
  if (before) query.set('before', before);
  return send('GET', `/v1/sessions?${query.toString()}`, undefined, { signal: abort.signal });
}

async function look(): Promise<void> {
  clearTimeout(timer);
  if (me.peek().state === 'in' && document.visibilityState === 'visible') {
    looking?.abort();
    looking = new AbortController();
    try {
      const { sessions: rows, next } = await page(looking);
      // Older ones that were asked for stay behind those that are newer.
      const ids = new Set(rows.map((row) => row.id));
      const oldest = rows.at(-1)?.updated ?? 0;
      const kept = next === undefined ? [] : sessions.peek().slice(PAGE).filter((row) => !ids.has(row.id) && row.updated <= oldest);
      sessions.value = [...rows, ...kept];
      if (kept.length === 0) more.value = next;
      sessionsProblem.value = undefined;
      listed.value = true;
    } catch (error) {
      const problem = Problem.of(error);
      if (problem.kind === 'aborted') return;
      if (!problem.passes || !listed.peek()) sessionsProblem.value = problem;
    }
  }
  timer = window.setTimeout(() => void look(), EVERY);
}

/** Reads the list again soon. */
export function touchSessions(): void {
  clearTimeout(timer);
  timer = window.setTimeout(() => void look(), 100);
}

/** Another list: with other words. */
export function narrow(to: Partial<Narrowed>): void {
  narrowed.value = { ...narrowed.peek(), ...to };
  sessions.value = [];
  more.value = undefined;
  listed.value = false;
  looking?.abort();
  reading?.abort();
  reading = undefined;
  clearTimeout(timer);
  timer = window.setTimeout(() => void look(), to.q === undefined ? 0 : 200);
}

/** Reads the ones behind the last. */
export async function moreSessions(): Promise<void> {
  const before = more.peek();
  if (before === undefined || reading) return;
  const own = new AbortController();
  reading = own;
  try {
    const { sessions: rows, next } = await page(own, before);
    const ids = new Set(sessions.peek().map((row) => row.id));
    sessions.value = [...sessions.peek(), ...rows.filter((row) => !ids.has(row.id))];
    more.value = next;
  } catch (error) {
    const problem = Problem.of(error);
    if (problem.kind !== 'aborted') sessionsProblem.value = problem;
  } finally {
    if (reading === own) reading = undefined;
  }
}

let begun = false;

/** Keeps the list up to date, while the page is seen. */
export function watchSessions(): void {
  if (begun) return;
  begun = true;
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && touchSessions());
  void look();
}
