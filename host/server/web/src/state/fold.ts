/** A session as its events make it. One function, `apply`, takes events in their order; what is
 * shown is a function of them and of the rows of the store. So a live page, a reloaded one, a second
 * tab and a page after a restart of the server show the same. */

import type { EndStatus, Reach, SessionEvent, Usage } from '../api/events';

/** Characters of a running text that are kept of one step; the row has all of it. */
const MAX_TEXT = 2_000_000;

/** A tool call as the events tell it. */
export interface Call {
  kind: 'call';
  id: string;
  key: string;
  agent: string;
  step: number;
  parent: string | undefined;
  tool: string;
  arguments: string;
  started: number;
  ended?: number;
  ok?: boolean;
  ending?: string;
  error?: string;
  fuel: number;
  micros: number;
  denials: number;
  bytes: number;
  progress?: { done: number; total: number | undefined; message: string };
  /** The times in which it waited for a person; the last one has no end while it still does. */
  waits?: Wait[];
}

/** A time in which a call waited for a person's answer. */
export interface Wait {
  /** The question, by its number. */
  question: number;
  start: number;
  end?: number;
}

/** Words of a model. */
export interface Said {
  kind: 'said';
  key: string;
  step: number;
  text: string;
  at: number;
}

/** The place in the answer where subagents were started: all those of one step. */
export interface BatchPlace {
  kind: 'batch';
  key: string;
  step: number;
  children: string[];
  /** What the tasks of each batch are about, by its id, where the agent said so. */
  titles: Map<string, string>;
  /** How each batch of several ended, by its id. */
  summaries: Map<string, string>;
}

/** Something that happened, in a line. */
export interface Note {
  kind: 'note';
  key: string;
  at: number;
  event: Extract<
    SessionEvent,
    {
      type:
        | 'retry'
        | 'subagent_background'
        | 'warning'
        | 'budget_warning'
        | 'hook_ran'
        | 'history_compacting'
        | 'history_compacted'
        | 'run_resumed'
        | 'team_stage_started'
        | 'team_stage_finished';
    }
  >;
}

/** A question that waits for a person. */
export interface Asked {
  id: number;
  agent: string;
  at: number;
  what:
    | ({ kind: 'permission'; call_id: string; tool: string; arguments: string } & Reach)
    | { kind: 'clarify'; question: string; options: string[]; private?: boolean };
}

export type Item = Call | Said | BatchPlace | Note;

/** A step of an agent: one answer of the model and its calls. */
export interface Step {
  step: number;
  /** When the model was asked. */
  started: number;
  /** When its first word came. */
  spoke?: number;
  /** When it had said all: its first call, or the next thing that happened. */
  ended?: number;
}

/** One agent of a turn. */
export interface Agent {
  path: string;
  /** The task, cut; of a subagent. */
  task: string;
  /** The path of who started it. */
  parent: string | undefined;
  state: 'queued' | 'running' | EndStatus;
  model: string;
  tools: string[];
  items: Item[];
  steps: Step[];
  started: number | undefined;
  ended: number | undefined;
  error: string | undefined;
  tokens: number | undefined;
  /** Steps that it took, as its end says them. */
  taken: number | undefined;
  usage: Usage | undefined;
  total: Usage | undefined;
  todos: { content: string; status: string }[];
}

/** One turn: an agent's message, and all that belongs to it. */
export interface Turn {
  message: string;
  root: Agent;
  agents: Map<string, Agent>;
  calls: Map<string, Call>;
  questions: Map<number, Asked>;
  first: number;
  last: number;
  resumed: number;
  budget: Map<string, { used: number; limit: number }>;
}

/** The events of a session, taken together. */
export interface Session {
  /** The id of the last event. */
  seen: number;
  turns: Map<string, Turn>;
}

export function emptySession(): Session {
  return { seen: 0, turns: new Map() };
}

export function emptyAgent(path: string): Agent {
  return {
    path,
    task: '',
    parent: undefined,
    state: 'queued',
    model: '',
    tools: [],
    items: [],
    steps: [],
    started: undefined,
    ended: undefined,
    error: undefined,
    tokens: undefined,
    taken: undefined,
    usage: undefined,
    total: undefined,
    todos: [],
  };
}

/** The name of a call: ids are only unique within a step of an agent. */
export function callKey(agent: string, step: number, id: string): string {
  return `${agent} ${step} ${id}`;
}

function turnOf(session: Session, event: SessionEvent): Turn {
  let turn = session.turns.get(event.message);
  if (!turn) {
    const root = emptyAgent(event.agent);
    root.state = 'running';
    root.started = event.at;
    turn = {
      message: event.message,
      root,
      agents: new Map([[event.agent, root]]),
      calls: new Map(),
      questions: new Map(),
      first: event.at,
      last: event.at,
      resumed: 0,
      budget: new Map(),
    };
    session.turns.set(event.message, turn);
  }
  return turn;
}

function agentOf(turn: Turn, path: string): Agent {
  let agent = turn.agents.get(path);
  if (!agent) {
    agent = emptyAgent(path);
    agent.parent = path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : undefined;
    turn.agents.set(path, agent);
  }
  return agent;
}

/** What the model says is over: something else happens. */
function endAnswer(agent: Agent, at: number): void {
  const step = agent.steps.at(-1);
  if (step && step.ended === undefined) step.ended = at;
}

/** Takes the next event. What was told before (a stream that was opened again, a run that was
 * resumed) changes nothing twice. */
export function apply(session: Session, event: SessionEvent): void {
  if (event.event_id <= session.seen) return;
  session.seen = event.event_id;
  const turn = turnOf(session, event);
  turn.last = event.at;
  const agent = agentOf(turn, event.agent);
  if (agent.state === 'queued' && event.type !== 'subagent_batch_start') {
    agent.state = 'running';
    agent.started ??= event.at;
  }
  take(turn, agent, event);
}

function take(turn: Turn, agent: Agent, event: SessionEvent): void {
  switch (event.type) {
    case 'run_started':
      agent.model = event.model;
      agent.tools = event.tools;
      agent.started ??= event.at;
      return;
    case 'step_started':
      return beginStep(turn, agent, event.step, event.at);
    case 'text_delta':
      return say(agent, event.text, event.event_id, event.at);
    case 'tool_call_started':
      return beginCall(turn, agent, event);
    case 'tool_progress': {
      const call = lastCall(agent, event.call_id);
      if (call) call.progress = { done: event.done, total: event.total, message: event.text ?? '' };
      return;
    }
    case 'tool_call_finished':
      return endCall(turn, agent, event);
    case 'subagent_batch_start':
      return beginBatch(turn, agent, event);
    case 'subagent_batch_end':
      return endBatch(agent, event);
    case 'subagent_update': {
      const child = agentOf(turn, event.child);
      if (!isOver(child)) {
        child.state = 'running';
        child.started ??= event.at;
      }
      return;
    }
    case 'subagent_done':
      return endChild(turn, event);
    case 'permission_asked': {
      const { call_id, tool, arguments: args, mounts, hosts, secrets } = event;
      const reach = { mounts, hosts, secrets };
      const what = { kind: 'permission' as const, call_id, tool, arguments: args, ...reach };
      turn.questions.set(event.id, { id: event.id, agent: event.agent, at: event.at, what });
      beginWait(lastCall(agent, call_id), event.id, event.at);
      return;
    }
    case 'question_asked': {
      const { question, options, private: own } = event;
      const what = { kind: 'clarify' as const, question, options, ...(own ? { private: true } : {}) };
      turn.questions.set(event.id, { id: event.id, agent: event.agent, at: event.at, what });
      beginWait(openCall(agent), event.id, event.at);
      return;
    }
    case 'permission_answered':
    case 'question_answered':
      turn.questions.delete(event.id);
      endWait(agent, event.id, event.at);
      return;
    case 'todos':
      agent.todos = event.items;
      return;
    case 'run_resumed':
      // Whatever was asked is asked again.
      turn.questions.clear();
      turn.resumed += 1;
      note(agent, event);
      return;
    case 'budget_warning':
      turn.budget.set(event.meter, { used: event.used, limit: event.limit });
      note(agent, event);
      return;
    case 'hook_ran':
      if (event.decision !== 'pass') note(agent, event);
      return;
    case 'retry':
      if (event.replaces) takeBack(agent);
      note(agent, event);
      return;
    case 'warning':
    case 'subagent_background':
    case 'history_compacting':
    case 'history_compacted':
    case 'team_stage_started':
    case 'team_stage_finished':
      note(agent, event);
      return;
    case 'run_finished':
      return endRun(turn, agent, event);
    default:
      // A kind that came later.
      return;
  }
}

function beginStep(turn: Turn, agent: Agent, step: number, at: number): void {
  endAnswer(agent, at);
  // Told again after a restart: what had no result is not part of it.
  if ((agent.steps.at(-1)?.step ?? 0) >= step) {
    agent.steps = agent.steps.filter((one) => one.step < step);
    agent.items = agent.items.filter((item) => {
      if (item.kind === 'note' || item.kind === 'batch' || item.step < step) return true;
      if (item.kind === 'call' && item.ended !== undefined) return true;
      if (item.kind === 'call') turn.calls.delete(item.key);
      return false;
    });
  }
  agent.steps.push({ step, started: at });
}

function say(agent: Agent, text: string, id: number, at: number): void {
  const step = agent.steps.at(-1);
  if (step) step.spoke ??= at;
  const number = step?.step ?? 0;
  const last = agent.items.at(-1);
  if (last?.kind === 'said' && last.step === number) {
    if (last.text.length < MAX_TEXT) last.text += text;
  } else {
    agent.items.push({ kind: 'said', key: `said ${id}`, step: number, text, at });
  }
}

/** The answer of this step broke off and comes again from its start. */
function takeBack(agent: Agent): void {
  const number = agent.steps.at(-1)?.step ?? 0;
  agent.items = agent.items.filter((item) => item.kind !== 'said' || item.step !== number);
}

function lastCall(agent: Agent, id: string): Call | undefined {
  for (let at = agent.items.length - 1; at >= 0; at -= 1) {
    const item = agent.items[at];
    if (item?.kind === 'call' && item.id === id) return item;
  }
  return undefined;
}

/** The call that began last and has no result: the one that asks. */
function openCall(agent: Agent): Call | undefined {
  return agent.items.findLast((item): item is Call => item.kind === 'call' && item.ended === undefined);
}

function beginWait(call: Call | undefined, question: number, start: number): void {
  if (call) (call.waits ??= []).push({ question, start });
}

function endWait(agent: Agent, question: number, end: number): void {
  for (const item of agent.items) {
    const wait = item.kind === 'call' && item.waits?.find((one) => one.question === question && one.end === undefined);
    if (wait) wait.end = end;
  }
}

function beginCall(turn: Turn, agent: Agent, event: Extract<SessionEvent, { type: 'tool_call_started' }>): void {
  if (!event.parent) endAnswer(agent, event.at);
  const key = callKey(event.agent, event.step, event.call_id);
  const known = turn.calls.get(key);
  if (known) {
    // It is begun anew.
    known.started = event.at;
    delete known.ended;
    delete known.waits;
    return;
  }
  const call: Call = {
    kind: 'call',
    id: event.call_id,
    key,
    agent: event.agent,
    step: event.step,
    parent: event.parent,
    tool: event.tool,
    arguments: event.arguments,
    started: event.at,
    fuel: 0,
    micros: 0,
    denials: 0,
    bytes: 0,
  };
  turn.calls.set(key, call);
  agent.items.push(call);
}

function endCall(turn: Turn, agent: Agent, event: Extract<SessionEvent, { type: 'tool_call_finished' }>): void {
  const key = callKey(event.agent, event.step, event.call_id);
  let call = turn.calls.get(key);
  if (!call) {
    // A call that was refused before it began.
    const { event_id: _event, ...rest } = event;
    beginCall(turn, agent, {
      ...rest,
      event_id: event.event_id,
      type: 'tool_call_started',
      arguments: '',
      at: event.at - event.micros / 1000,
    } as Extract<SessionEvent, { type: 'tool_call_started' }>);
    call = turn.calls.get(key);
  }
  if (!call) return;
  Object.assign(call, {
    ended: event.at,
    ok: event.ok,
    ending: event.ending,
    error: event.error,
    fuel: event.fuel,
    micros: event.micros,
    denials: event.denials,
    bytes: event.bytes,
  });
}

function beginBatch(turn: Turn, agent: Agent, event: Extract<SessionEvent, { type: 'subagent_batch_start' }>): void {
  endAnswer(agent, event.at);
  const step = agent.steps.at(-1)?.step ?? 0;
  let place = agent.items.find((item): item is BatchPlace => item.kind === 'batch' && item.step === step);
  if (!place) {
    place = { kind: 'batch', key: `batch ${event.event_id}`, step, children: [], titles: new Map(), summaries: new Map() };
    agent.items.push(place);
  }
  if (event.title) place.titles.set(event.batch, event.title);
  for (const { child: path, task } of event.children) {
    const child = agentOf(turn, path);
    child.task = task;
    child.parent = event.agent;
    if (!place.children.includes(path)) place.children.push(path);
  }
}

function endBatch(agent: Agent, event: Extract<SessionEvent, { type: 'subagent_batch_end' }>): void {
  if (event.counts.total < 2) return;
  const places = agent.items.filter((item): item is BatchPlace => item.kind === 'batch');
  // The last one: an agent may start a batch of that id again after a restart.
  places.at(-1)?.summaries.set(event.batch, event.summary);
}

function isOver(agent: Agent): boolean {
  return agent.state !== 'queued' && agent.state !== 'running';
}

function endChild(turn: Turn, event: Extract<SessionEvent, { type: 'subagent_done' }>): void {
  const child = agentOf(turn, event.child);
  child.state = event.status;
  child.ended = event.at;
  child.error = event.error;
  child.tokens = event.tokens;
  child.taken = event.steps;
  endAnswer(child, event.at);
  over(turn, event.child);
}

/** Whoever has ended asks nothing and calls nothing any more. */
function over(turn: Turn, path: string): void {
  for (const [id, asked] of turn.questions) {
    if (asked.agent === path || asked.agent.startsWith(`${path}/`)) turn.questions.delete(id);
  }
}

function endRun(turn: Turn, agent: Agent, event: Extract<SessionEvent, { type: 'run_finished' }>): void {
  agent.state = event.status;
  agent.ended = event.at;
  agent.error = event.error;
  agent.usage = event.usage;
  agent.total = event.total;
  endAnswer(agent, event.at);
  over(turn, agent.path);
}

function note(agent: Agent, event: Note['event']): void {
  agent.items.push({ kind: 'note', key: `note ${event.event_id}`, at: event.at, event });
}

/** Whether a call waits for a person, and nothing works on it. */
export function isWaiting(call: Call): boolean {
  return call.ended === undefined && (call.waits ?? []).some((wait) => wait.end === undefined);
}

/** Whether the turn goes on, as far as the events say. */
export function isRunning(turn: Turn): boolean {
  return !isOver(turn.root);
}
