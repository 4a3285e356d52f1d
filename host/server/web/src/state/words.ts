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

/** The argument that says what a tool does, by the tool: a model may give it others beside that. Of a
 * tool that is not known here none is: what its arguments mean is not known either. */
const TELLING: Record<string, readonly string[]> = {
  Bash: ['command'],
  Edit: ['file_path', 'path'],
  Glob: ['pattern'],
  Grep: ['pattern'],
  LS: ['path'],
  Read: ['file_path', 'path'],
  WebFetch: ['url'],
  Write: ['file_path', 'path'],
  agent_cancel: ['id'],
  agent_result: ['id'],
  agent_status: ['id'],
  attach_file: ['path'],
  clarify: ['question'],
  file_edit: ['path'],
  file_find: ['pattern'],
  file_list: ['path'],
  file_read: ['path'],
  file_search: ['pattern'],
  file_write: ['path'],
  notebook_edit: ['path'],
  shell: ['command'],
  skill: ['name'],
  spawn_agent: ['agent', 'task'],
  use_skill: ['name'],
  web_fetch: ['url'],
  web_search: ['query'],
};

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
export function telling(call: Pick<Call, 'arguments' | 'tool'>): string {
  const args = argumentsOf(call);
  if (!args || !Object.hasOwn(TELLING, call.tool)) return '';
  for (const name of TELLING[call.tool] ?? []) {
    const value = args[name];
    if (typeof value === 'string' && value !== '') return value;
    if (typeof value === 'number') return String(value);
  }
  return '';
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
