/** The subagent card: what each row says, and what its head counts. A function of the fold and of
 * the stored rows; time comes from the events, so that it is the same everywhere. */

import type { Of } from '../api/client';
import { text } from '../text';
import type { State } from '../ui/status';
import { words, type Words } from './words';
import type { Agent, Asked, Turn } from './fold';

export type SubagentRow = Of<'SubagentBody'>;

/** One row of the card. */
export interface CardRow {
  path: string;
  /** The name of the agent with its number: `scout#0`. */
  name: string;
  task: string;
  state: State;
  /** What it does now; only while it runs. */
  now: Words | undefined;
  step: number;
  tokens: number | undefined;
  fuel: number;
  started: number | undefined;
  ended: number | undefined;
  /** Why it did not complete. */
  error: string | undefined;
  /** Who cancelled it, in words. */
  cancelledBy: string | undefined;
  questions: Asked[];
  /** How many it has started itself. */
  children: number;
  refused: number;
}

/** The head of the card. */
export interface CardHead {
  total: number;
  done: number;
  counts: Partial<Record<State, number>>;
}

/** The last part of a path: `keeper/scout#0` is `scout#0`. */
export function shortName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** The agents at and below a path. */
export function below(turn: Turn, path: string): Agent[] {
  return [...turn.agents.values()].filter((one) => one.path === path || one.path.startsWith(`${path}/`));
}

/** One subagent as a row. */
export function cardRow(turn: Turn, path: string, stored: ReadonlyMap<string, SubagentRow>): CardRow {
  const agent = turn.agents.get(path);
  const row = stored.get(path);
  const questions = [...turn.questions.values()].filter((one) => one.agent === path || one.agent.startsWith(`${path}/`));
  let state: State = agent?.state ?? (row?.status as State | undefined) ?? 'queued';
  // The turn is over, and of this one no end was told: nobody works on it.
  if ((state === 'running' || state === 'queued') && turn.root.ended !== undefined) {
    state = endOf(row) ?? 'cancelled';
  }
  if (state === 'running' && questions.length > 0) state = 'waiting';
  const family = below(turn, path);
  const calls = family.flatMap((one) => one.items.filter((item) => item.kind === 'call'));
  return {
    path,
    name: shortName(path),
    task: row?.goal ?? agent?.task ?? '',
    state,
    now: agent && (state === 'running' || state === 'waiting') ? words(turn, agent) : undefined,
    step: agent?.taken ?? agent?.steps.at(-1)?.step ?? 0,
    tokens: agent?.tokens ?? (row && endOf(row) ? row.input_tokens + row.output_tokens : undefined),
    fuel: calls.length ? calls.reduce((sum, call) => sum + call.fuel, 0) : (row?.fuel ?? 0),
    started: agent?.started ?? row?.started ?? undefined,
    ended: agent?.ended ?? row?.ended ?? undefined,
    error: agent?.error ?? row?.error ?? undefined,
    cancelledBy: state === 'cancelled' ? canceller(row?.cancelled_by) : undefined,
    questions,
    children: family.length - 1,
    refused: calls.filter((call) => call.denials > 0).length,
  };
}

/** Who cancelled something, in words. */
export function canceller(by: string | null | undefined): string | undefined {
  return by == null ? undefined : Object.hasOwn(text.cancellers, by) ? text.cancellers[by] : by;
}

function endOf(row: SubagentRow | undefined): State | undefined {
  const ends: readonly string[] = ['completed', 'partial', 'failed', 'cancelled'];
  return row && ends.includes(row.status) ? (row.status as State) : undefined;
}

/** The head: it says no less than the rows. */
export function cardHead(rows: readonly CardRow[]): CardHead {
  const counts: Partial<Record<State, number>> = {};
  for (const { state } of rows) counts[state] = (counts[state] ?? 0) + 1;
  const ended = ['completed', 'partial', 'failed', 'cancelled'] as const;
  const done = ended.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
  return { total: rows.length, done, counts };
}
