/** A turn as spans of time: answers of models, calls and the calls that they made, subagents. */

import type { Agent, Call, Turn } from './fold';

/** One bar of the waterfall. */
export interface Span {
  key: string;
  depth: number;
  kind: 'model' | 'call' | 'agent';
  start: number;
  /** Absent while it goes on. */
  end: number | undefined;
  agent: string;
  step: number;
  call?: Call;
  /** Of a call: the times in it that went by waiting for a person. */
  waits?: { start: number; end: number | undefined }[];
  /** Of a subagent. */
  child?: Agent;
}

/** When a call began: what the host measured counts, since events wait for each other. */
function callStart(call: Call): number {
  return call.ended !== undefined && call.micros > 0 ? Math.min(call.started, call.ended - call.micros / 1000) : call.started;
}

/** The waits of a call for a person; one that nobody answered lasts until the call's end. */
function waitsOf(call: Call, end: number | undefined): { start: number; end: number | undefined }[] {
  return (call.waits ?? []).map((wait) => ({ start: wait.start, end: wait.end ?? end }));
}

/** All spans of a turn, parents before what they made; those beside each other by their begin. */
export function spans(turn: Turn, root: Agent = turn.root): Span[] {
  const out: Span[] = [];
  ofAgent(turn, root, 0, out);
  return out;
}

function ofAgent(turn: Turn, agent: Agent, depth: number, out: Span[]): void {
  const own: { at: number; add: () => void }[] = [];
  for (const step of agent.steps) {
    const span: Span = {
      key: `model ${agent.path} ${step.step}`,
      depth,
      kind: 'model',
      start: step.started,
      end: step.ended ?? (agent.ended !== undefined ? agent.ended : undefined),
      agent: agent.path,
      step: step.step,
    };
    own.push({ at: step.started, add: () => out.push(span) });
  }
  const calls = agent.items.filter((item): item is Call => item.kind === 'call');
  const ids = new Set(calls.map((call) => call.id));
  const addCall = (call: Call, level: number) => {
    const end = call.ended ?? (agent.ended !== undefined ? agent.ended : undefined);
    out.push({
      key: `call ${call.key}`,
      depth: level,
      kind: 'call',
      start: callStart(call),
      end,
      agent: agent.path,
      step: call.step,
      call,
      waits: waitsOf(call, end),
    });
    for (const inner of calls) if (inner.parent === call.id && inner.step === call.step && inner !== call) addCall(inner, level + 1);
  };
  for (const call of calls) {
    if (call.parent !== undefined && ids.has(call.parent) && call.parent !== call.id) continue;
    own.push({ at: callStart(call), add: () => addCall(call, depth) });
  }
  for (const item of agent.items) {
    if (item.kind !== 'batch') continue;
    for (const path of item.children) {
      const child = turn.agents.get(path);
      if (!child) continue;
      const start = child.started ?? child.ended ?? turn.last;
      own.push({
        at: start,
        add: () => {
          out.push({ key: `agent ${path}`, depth, kind: 'agent', start, end: child.ended, agent: path, step: item.step, child });
          ofAgent(turn, child, depth + 1, out);
        },
      });
    }
  }
  own.sort((a, b) => a.at - b.at);
  for (const one of own) one.add();
}
