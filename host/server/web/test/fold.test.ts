import { describe, expect, it } from 'vitest';
import { cardHead, cardRow } from '../src/state/card';
import { apply, emptySession, isRunning, isWaiting, type Session, type Turn } from '../src/state/fold';
import { spans } from '../src/state/spans';
import { conversation } from '../src/views/sessions/pieces';
import type { EventKind, SessionEvent } from '../src/api/events';

const MESSAGE = '20261124T100000000Z-0000000000001';
let next = 0;

/** A call that can touch nothing. */
const nothing = { mounts: [], hosts: [], secrets: [] };

/** An event of `agent`, `at` milliseconds after the begin. */
function event(agent: string, kind: EventKind, at = next * 10): SessionEvent {
  next += 1;
  return { ...kind, event_id: next, at, session: 's', message: MESSAGE, run: 'r', seq: next - 1, agent } as SessionEvent;
}

const counts = { total: 1, queued: 0, running: 1, completed: 0, partial: 0, failed: 0, cancelled: 0 };
const used = { steps: 2, input_tokens: 10, cached_tokens: 0, output_tokens: 5, tool_calls: 1, fuel: 7 };

/** A turn with two subagents, started by two calls of one step; one of them is refused something. */
function story(): SessionEvent[] {
  next = 0;
  const start = (child: string, batch: string) =>
    event('main', { type: 'subagent_batch_start', batch, children: [{ child, task: `do ${child}` }], background: false, max_concurrent: 4 });
  return [
    event('main', { type: 'run_started', id: 'home/main', model: 'm', tools: ['spawn_agent'], workspace: '/workspace' }),
    event('main', { type: 'step_started', step: 1, last: false }),
    event('main', { type: 'text_delta', text: 'Two ' }),
    event('main', { type: 'text_delta', text: 'at once.' }),
    start('main/scout#0', 'c0'),
    event('main', { type: 'subagent_update', batch: 'c0', child: 'main/scout#0', counts }),
    start('main/scout#1', 'c1'),
    event('main/scout#0', { type: 'step_started', step: 1, last: false }),
    event('main/scout#0', { type: 'tool_call_started', step: 1, call_id: 'x', tool: 'file_read', arguments: '{"path":"/etc/passwd"}' }),
    event('main/scout#0', {
      type: 'tool_call_finished', step: 1, call_id: 'x', tool: 'file_read', ok: false, ending: 'denied', error: 'outside',
      fuel: 40, micros: 2000, denials: 1, bytes: 0,
    }),
    event('main/scout#0', { type: 'tool_call_started', step: 1, call_id: 'y', tool: 'file_read', arguments: '{"path":"src/alarm.py"}' }),
    event('main/scout#0', { type: 'permission_asked', id: 3, call_id: 'y', tool: 'file_read', arguments: '{}', ...nothing }),
  ];
}

/** The rest of it. */
function ending(): SessionEvent[] {
  return [
    event('main/scout#0', { type: 'permission_answered', id: 3, call_id: 'y', tool: 'file_read', answer: 'yes' }),
    event('main/scout#0', {
      type: 'tool_call_finished', step: 1, call_id: 'y', tool: 'file_read', ok: true, ending: 'completed', fuel: 60, micros: 900, denials: 0, bytes: 12,
    }),
    event('main', { type: 'subagent_done', batch: 'c0', child: 'main/scout#0', status: 'partial', steps: 1, tokens: 90, error: 'out of steps', counts }),
    event('main', { type: 'subagent_done', batch: 'c1', child: 'main/scout#1', status: 'cancelled', steps: 0, tokens: 0, counts }),
    event('main', { type: 'step_started', step: 2, last: false }),
    event('main', { type: 'text_delta', text: 'Done.' }),
    event('main', { type: 'run_finished', status: 'completed', usage: used, total: used }),
  ];
}

function told(events: SessionEvent[], session: Session = emptySession()): Session {
  for (const one of events) apply(session, one);
  return session;
}

function turnOf(session: Session): Turn {
  const turn = session.turns.get(MESSAGE);
  if (!turn) throw new Error('no turn');
  return turn;
}

/** The card as it is seen: time aside, which goes on. */
function seen(session: Session) {
  const turn = turnOf(session);
  const place = turn.root.items.find((item) => item.kind === 'batch');
  if (place?.kind !== 'batch') throw new Error('no card');
  const rows = place.children.map((path) => cardRow(turn, path, new Map()));
  return { head: cardHead(rows), rows };
}

describe('a card', () => {
  it('has one row for each subagent of a step, whichever call started it', () => {
    const { head, rows } = seen(told(story()));
    expect(rows.map((row) => [row.path, row.state])).toEqual([
      ['main/scout#0', 'waiting'],
      ['main/scout#1', 'queued'],
    ]);
    expect(head).toEqual({ total: 2, done: 0, counts: { waiting: 1, queued: 1 } });
    expect(rows[0]?.now).toMatchObject({ what: 'reading', on: 'src/alarm.py' });
    expect(rows[0]).toMatchObject({ fuel: 40, refused: 1, step: 1 });
  });

  it('counts those that are over, however they ended', () => {
    const { head, rows } = seen(told([...story(), ...ending()]));
    expect(head).toEqual({ total: 2, done: 2, counts: { partial: 1, cancelled: 1 } });
    expect(rows[0]).toMatchObject({ state: 'partial', tokens: 90, fuel: 100, error: 'out of steps', questions: [] });
  });

  it('has the title of a batch, and its summary when it has ended', () => {
    const batch = 'c5';
    const children = [{ child: 'main/scout#0', task: 'a' }, { child: 'main/scout#1', task: 'b' }];
    const both = { ...counts, total: 2 };
    const session = told([
      event('main', { type: 'step_started', step: 1, last: false }),
      event('main', { type: 'subagent_batch_start', batch, title: 'Two looks', children, background: false, max_concurrent: 3 }),
      event('main', { type: 'subagent_batch_end', batch, summary: '2 completed', counts: both }),
    ]);
    const place = turnOf(session).root.items.find((item) => item.kind === 'batch');
    expect([...(place?.titles.values() ?? [])]).toEqual(['Two looks']);
    expect([...(place?.summaries.values() ?? [])]).toEqual(['2 completed']);
  });

  it('is the same live, reloaded, in a tab that came late, and told twice', () => {
    const events = [...story(), ...ending()];
    const live = emptySession();
    const lateAt = 9;
    for (const one of events.slice(0, lateAt)) apply(live, one);
    const late = told(events.slice(0, lateAt));
    for (const one of events.slice(lateAt)) {
      apply(live, one);
      apply(late, one);
    }
    const reloaded = told(events);
    const twice = told(events, told(events.slice(0, 12)));
    for (const other of [late, reloaded, twice]) expect(seen(other)).toEqual(seen(live));
  });

  it('is the same after the server was killed in the middle and told a step again', () => {
    const whole = seen(told([...story(), ...ending()]));
    const before = story();
    // The permission was asked, then the process died: what has no result is told again.
    const again = [
      event('main', { type: 'run_resumed', kept: 4 }),
      event('main', { type: 'subagent_update', batch: 'c0', child: 'main/scout#0', counts }),
      event('main/scout#0', { type: 'tool_call_started', step: 1, call_id: 'y', tool: 'file_read', arguments: '{"path":"src/alarm.py"}' }),
      event('main/scout#0', { type: 'permission_asked', id: 40, call_id: 'y', tool: 'file_read', arguments: '{}', ...nothing }),
      event('main/scout#0', { type: 'permission_answered', id: 40, call_id: 'y', tool: 'file_read', answer: 'yes' }),
    ];
    const session = told([...before, ...again, ...ending().slice(1)]);
    const strip = (of: ReturnType<typeof seen>) => of.rows.map(({ started: _s, ended: _e, ...row }) => row);
    expect(strip(seen(session))).toEqual(strip(whole));
    expect(seen(session).head).toEqual(whole.head);
  });

  it('leaves nobody running in a turn that is over', () => {
    const events = [...story(), event('main', { type: 'run_finished', status: 'failed', usage: used, total: used })];
    expect(seen(told(events)).head).toMatchObject({ done: 2 });
  });
});

describe('a step that is told again', () => {
  it('replaces what it had said, and keeps calls that had ended', () => {
    next = 0;
    const session = told([
      event('main', { type: 'step_started', step: 1, last: false }),
      event('main', { type: 'text_delta', text: 'half a sen' }),
      event('main', { type: 'run_resumed', kept: 0 }),
      event('main', { type: 'step_started', step: 1, last: false }),
      event('main', { type: 'text_delta', text: 'A whole sentence.' }),
    ]);
    const said = turnOf(session).root.items.filter((item) => item.kind === 'said');
    expect(said.map((item) => item.text)).toEqual(['A whole sentence.']);
  });
});

describe('a question', () => {
  it('is gone when it was answered, when its turn resumed, and when who asked has ended', () => {
    const open = told(story());
    expect([...turnOf(open).questions.keys()]).toEqual([3]);
    expect(turnOf(told([...story(), ...ending().slice(0, 1)])).questions.size).toBe(0);
    expect(turnOf(told([...story(), event('main', { type: 'run_resumed', kept: 1 })])).questions.size).toBe(0);
    const events = story();
    events.push(event('main', { type: 'subagent_done', batch: 'c0', child: 'main/scout#0', status: 'cancelled', steps: 1, tokens: 1, counts }));
    expect(turnOf(told(events)).questions.size).toBe(0);
  });
});

describe('spans', () => {
  it('nest calls in the calls that made them, and agents in who started them', () => {
    next = 0;
    const call = (id: string, parent?: string): EventKind => ({ type: 'tool_call_started', step: 1, call_id: id, ...(parent && { parent }), tool: id, arguments: '{}' });
    const done = (id: string, parent?: string): EventKind => ({
      type: 'tool_call_finished', step: 1, call_id: id, ...(parent && { parent }), tool: id, ok: true, ending: 'completed', fuel: 1, micros: 1000, denials: 0, bytes: 0,
    });
    const session = told([
      event('main', { type: 'step_started', step: 1, last: false }),
      event('main', call('a')),
      event('main', call('a/1', 'a')),
      event('main', call('a/1/1', 'a/1')),
      event('main', done('a/1/1', 'a/1')),
      event('main', done('a/1', 'a')),
      event('main', done('a')),
    ]);
    expect(spans(turnOf(session)).map((span) => [span.kind, span.depth, span.call?.id])).toEqual([
      ['model', 0, undefined],
      ['call', 0, 'a'],
      ['call', 1, 'a/1'],
      ['call', 2, 'a/1/1'],
    ]);
  });

  it('tell the wait for a person from the work of the call', () => {
    next = 0;
    const session = told([
      event('main', { type: 'step_started', step: 1, last: false }, 0),
      event('main', { type: 'tool_call_started', step: 1, call_id: 'w', tool: 'file_write', arguments: '{}' }, 1_000),
      event('main', { type: 'permission_asked', id: 1, call_id: 'w', tool: 'file_write', arguments: '{}', ...nothing }, 1_100),
    ]);
    const waits = () => spans(turnOf(session)).find((span) => span.call)?.waits;
    const waiting = () => [...turnOf(session).calls.values()].some(isWaiting);
    expect([waits(), waiting()]).toEqual([[{ start: 1_100, end: undefined }], true]);
    told([event('main', { type: 'permission_answered', id: 1, call_id: 'w', tool: 'file_write', answer: 'yes' }, 61_100)], session);
    expect([waits(), waiting()]).toEqual([[{ start: 1_100, end: 61_100 }], false]);
    const took = { fuel: 1, micros: 20_000, denials: 0, bytes: 0 };
    told([event('main', { type: 'tool_call_finished', step: 1, call_id: 'w', tool: 'file_write', ok: true, ending: 'completed', ...took }, 61_120)], session);
    const [, call] = spans(turnOf(session));
    expect(call).toMatchObject({ start: 1_000, end: 61_120, waits: [{ start: 1_100, end: 61_100 }] });
  });

  it('have the wait for an answer in words too, in the call that asks', () => {
    next = 0;
    const session = told([
      event('main', { type: 'tool_call_started', step: 1, call_id: 'q', tool: 'clarify', arguments: '{}' }, 10),
      event('main', { type: 'question_asked', id: 4, question: 'Which?', options: [] }, 20),
      event('main', { type: 'question_answered', id: 4, answered: true }, 5_020),
    ]);
    expect(spans(turnOf(session))[0]?.waits).toEqual([{ start: 20, end: 5_020 }]);
  });

  it('end with the call, not with what came behind it', () => {
    const session = told([...story(), ...ending()]);
    for (const span of spans(turnOf(session))) expect(span.end).toBeGreaterThanOrEqual(span.start);
  });
});

describe('a session', () => {
  it('passes over kinds of events that it does not know', () => {
    next = 0;
    const session = told([event('main', { type: 'from_tomorrow' } as never), event('main', { type: 'step_started', step: 1, last: false })]);
    expect(turnOf(session).root.steps).toHaveLength(1);
  });

  it('takes 10,000 events and is laid out in a moment', () => {
    next = 0;
    const events: SessionEvent[] = [];
    for (let step = 1; events.length < 10_000; step += 1) {
      events.push(event('main', { type: 'step_started', step, last: false }));
      for (let word = 0; word < 7; word += 1) events.push(event('main', { type: 'text_delta', text: 'word ' }));
      events.push(event('main', { type: 'tool_call_started', step, call_id: 'c', tool: 'file_read', arguments: '{"path":"a"}' }));
      events.push(event('main', {
        type: 'tool_call_finished', step, call_id: 'c', tool: 'file_read', ok: true, ending: 'completed', fuel: 1, micros: 1, denials: 0, bytes: 0,
      }));
    }
    const begun = performance.now();
    const session = told(events);
    const pieces = conversation([], session.turns, { said: undefined, upto: undefined, stored: new Map() });
    expect(performance.now() - begun).toBeLessThan(500);
    expect(pieces).toHaveLength(2 * 1000 + 2);
    expect(isRunning(turnOf(session))).toBe(true);
  });
});
