/** The events of a session as a stream that outlives the connection: it is opened again where it
 * broke off, behind the event that was seen last, and says in which state it is. */

import { createParser } from 'eventsource-parser';
import { lostKey } from './client';
import type { SessionEvent } from './events';
import { Problem } from './problem';

/** How the stream is: `retry` counts down to `at`; `gone`: it does not come back by itself. */
export type StreamState =
  | { state: 'connecting' }
  | { state: 'open' }
  | { state: 'retry'; at: number; problem: Problem }
  | { state: 'paused' }
  | { state: 'gone'; problem: Problem };

/** Longest wait before it is tried again, in milliseconds. */
const MAX_WAIT = 15_000;
/** The server says something every 15 s; after this silence the connection is taken for dead. */
const SILENCE = 40_000;
/** A page that nobody sees gives its connection back after this: a browser has six for a server. */
const HIDDEN = 5_000;

/** Reads the events of a session from behind `after` on. `take` gets them in blocks, in order and
 * without gap or repeat. Gives the way to stop. */
export function follow(
  session: string,
  after: number,
  take: (events: SessionEvent[]) => void,
  say: (state: StreamState) => void,
): { stop: () => void; now: () => void } {
  let seen = after;
  let failures = 0;
  let stopped = false;
  let paused = false;
  let abort: AbortController | undefined;
  let timer = 0;
  let hiding = 0;

  const open = async () => {
    clearTimeout(timer);
    abort?.abort();
    if (stopped || paused) return;
    const own = (abort = new AbortController());
    say({ state: 'connecting' });
    let watchdog = 0;
    const heard = () => {
      clearTimeout(watchdog);
      watchdog = window.setTimeout(() => own.abort(new TypeError('silence')), SILENCE);
    };
    try {
      heard();
      const response = await fetch(`/v1/sessions/${encodeURIComponent(session)}/events`, {
        headers: { accept: 'text/event-stream', 'last-event-id': String(seen) },
        credentials: 'same-origin',
        cache: 'no-store',
        signal: own.signal,
      });
      if (!response.ok || !response.body) {
        throw Problem.from(response, await response.json().catch(() => undefined));
      }
      failures = 0;
      say({ state: 'open' });
      let block: SessionEvent[] = [];
      const parser = createParser({
        onEvent: ({ data }) => {
          const event = read(data);
          if (!event || event.event_id <= seen) return;
          seen = event.event_id;
          block.push(event);
        },
      });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done || own !== abort) break;
        heard();
        parser.feed(value);
        if (block.length) take(block);
        block = [];
      }
      throw new TypeError('the stream ended');
    } catch (error) {
      if (stopped || paused || own !== abort) return;
      const problem = Problem.of(own.signal.aborted ? new TypeError('silence') : error);
      if (problem.status === 401) lostKey();
      if (problem.status >= 400 && problem.status < 500 && problem.status !== 408 && problem.status !== 429) {
        say({ state: 'gone', problem });
        return;
      }
      failures += 1;
      const wait = problem.after ? problem.after * 1000 : Math.min(MAX_WAIT, 250 * 2 ** Math.min(failures, 7));
      const at = Date.now() + wait * (0.75 + Math.random() / 2);
      say({ state: 'retry', at, problem });
      timer = window.setTimeout(open, at - Date.now());
    } finally {
      clearTimeout(watchdog);
    }
  };

  const seenAgain = () => {
    clearTimeout(hiding);
    if (document.visibilityState === 'hidden') {
      hiding = window.setTimeout(() => {
        paused = true;
        abort?.abort();
        clearTimeout(timer);
        say({ state: 'paused' });
      }, HIDDEN);
    } else if (paused) {
      paused = false;
      void open();
    }
  };
  const online = () => {
    failures = 0;
    void open();
  };
  document.addEventListener('visibilitychange', seenAgain);
  globalThis.addEventListener('online', online);
  void open();
  return {
    now: online,
    stop: () => {
      stopped = true;
      clearTimeout(timer);
      clearTimeout(hiding);
      abort?.abort();
      document.removeEventListener('visibilitychange', seenAgain);
      globalThis.removeEventListener('online', online);
    },
  };
}

/** The turn that an event belongs to. */
const TURN = /^\{"event_id":\d+,"at":\d+,"session":"[^"]*","message":"([^"]*)"/;

/** An event out of its JSON. A warning and a tool's progress have words of their own in `message`,
 * behind the turn's id of the same name: they become `words`. */
export function read(data: string): SessionEvent | undefined {
  try {
    const event = JSON.parse(data) as SessionEvent & { words?: string };
    if (typeof event?.event_id !== 'number' || typeof event.type !== 'string') return undefined;
    const turn = TURN.exec(data)?.[1];
    if (turn !== undefined && turn !== event.message) {
      event.words = event.message;
      event.message = turn;
    }
    return event;
  } catch {
    return undefined;
  }
}
