/** The events of a session as a stream that outlives the connection: it is opened again where it
 * broke off, behind the event that was seen last, and says in which state it is. */

import { bySocket, byStream } from './carrier';
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
/** Longest time that a look at whether the server is there takes. */
const LOOK = 10_000;
/** A page that nobody sees draws nothing, and is told of nothing: it catches up when it is seen. */
const HIDDEN = 5_000;
/** After so many WebSockets that a server which answers has not taken, none is tried any more. */
const REFUSED = 2;

/** How many WebSockets in a row were not taken although the server answers. */
let refused = 0;

/** Why a way broke off of which nobody said why; `undefined`: the server answers, and has the
 * session. */
async function look(session: string): Promise<Problem | undefined> {
  try {
    const response = await fetch(`/v1/sessions/${encodeURIComponent(session)}`, {
      headers: { accept: 'application/json' },
      credentials: 'same-origin',
      cache: 'no-store',
      signal: AbortSignal.timeout(LOOK),
    });
    if (response.ok) return undefined;
    return Problem.from(response, await response.json().catch(() => undefined));
  } catch {
    return Problem.of(new TypeError('nobody answers'));
  }
}

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
  let close = () => {};
  let timer = 0;
  let hiding = 0;
  /** Counts the ways that were opened; what an older one still says is not heard. */
  let turn = 0;

  const leave = () => {
    turn += 1;
    clearTimeout(timer);
    close();
    close = () => {};
  };

  const open = () => {
    leave();
    if (stopped || paused) return;
    const own = turn;
    let opened = false;
    const carrier = refused < REFUSED ? bySocket : byStream;
    say({ state: 'connecting' });
    close = carrier(session, seen, {
      open: () => {
        opened = true;
        failures = 0;
        if (carrier === bySocket) refused = 0;
        say({ state: 'open' });
      },
      events: (events) => {
        const fresh = events.filter((event) => event.event_id > seen && (seen = event.event_id));
        if (fresh.length > 0) take(fresh);
      },
      ended: (problem) => void end(own, problem, opened || carrier === byStream),
    });
  };

  const end = async (own: number, said: Problem | undefined, taken: boolean) => {
    const found = said ?? (await look(session));
    if (own !== turn) return;
    if (!found && !taken) refused += 1;
    const problem = found ?? Problem.of(new TypeError('the stream ended'));
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
  };

  const seenAgain = () => {
    clearTimeout(hiding);
    if (document.visibilityState === 'hidden') {
      hiding = window.setTimeout(() => {
        paused = true;
        leave();
        say({ state: 'paused' });
      }, HIDDEN);
    } else if (paused) {
      paused = false;
      open();
    }
  };
  const online = () => {
    failures = 0;
    open();
  };
  document.addEventListener('visibilitychange', seenAgain);
  globalThis.addEventListener('online', online);
  open();
  return {
    now: online,
    stop: () => {
      stopped = true;
      leave();
      clearTimeout(hiding);
      document.removeEventListener('visibilitychange', seenAgain);
      globalThis.removeEventListener('online', online);
    },
  };
}
