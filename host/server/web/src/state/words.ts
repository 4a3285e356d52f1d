/** What an agent does now, in words. */

import { text } from '../text';
import type { Agent, Call, Turn } from './fold';

/** `what` is ours, `on` is foreign: a path, a pattern, a command. */
export interface Words {
  what: string;
  on: string;
  /** Since when. */
  at: number | undefined;
}

/** The argument that says most about a call. */
const TELLING = ['path', 'file_path', 'pattern', 'query', 'command', 'url', 'name', 'agent', 'question', 'id', 'task'];

/** The arguments as an object, if they are whole. */
export function argumentsOf(call: Pick<Call, 'arguments'>): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(call.arguments);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

/** The one argument that says most about a call. */
export function telling(call: Pick<Call, 'arguments'>): string {
  const args = argumentsOf(call);
  if (!args) return '';
  for (const name of TELLING) {
    const value = args[name];
    if (typeof value === 'string' && value !== '') return value;
  }
  const first = Object.values(args).find((value) => typeof value === 'string' || typeof value === 'number');
  return first === undefined ? '' : String(first);
}

/** A call in words: `reading src/alarm.py`. */
export function callWords(call: Call): { what: string; on: string } {
  // A model may call a tool `constructor`, which every object has.
  const verb = Object.hasOwn(text.calls.verbs, call.tool) ? text.calls.verbs[call.tool] : undefined;
  return verb ? { what: verb, on: telling(call) } : { what: text.calls.calling, on: call.tool };
}

/** What the agent does now. */
export function words(turn: Turn, agent: Agent): Words {
  const open = agent.items.findLast((item): item is Call => item.kind === 'call' && item.ended === undefined);
  if (open) return { ...callWords(open), at: open.started };
  const children = [...turn.agents.values()].filter((one) => one.parent === agent.path);
  const working = children.filter((one) => one.state === 'running' || one.state === 'queued').length;
  if (working > 0) return { what: text.calls.subagents(working), on: '', at: agent.started };
  const step = agent.steps.at(-1);
  if (step && step.ended === undefined) {
    return { what: step.spoke === undefined ? text.calls.thinking : text.calls.answering, on: '', at: step.started };
  }
  return { what: text.calls.thinking, on: '', at: step?.started ?? agent.started };
}
