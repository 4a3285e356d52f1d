/** The two ways on which events come to the page. A browser opens six connections to a server for
 * everything but WebSockets, of which it opens 200 or more: with an event stream in each tab, the
 * seventh tab would get nothing at all. So events come by a WebSocket, and as an event stream only
 * where something between the page and its server lets no WebSocket through. */

import { createParser } from 'eventsource-parser';
import type { SessionEvent } from './events';
import { Problem } from './problem';
import { read } from './read';

/** Who is told how it goes. After `ended` nothing more is said. */
export interface Listener {
  open: () => void;
  events: (events: SessionEvent[]) => void;
  /** `undefined`: the way broke off, and nobody said why. */
  ended: (problem: Problem | undefined) => void;
}

/** Carries the events of a session from behind `after` on. Gives the way to stop, after which
 * nothing more is said either. */
export type Carrier = (session: string, after: number, listener: Listener) => () => void;

/** The other side says something every 15 s, asked or not; after this silence the connection is
 * taken for dead. */
const SILENCE = 40_000;
const ASK = 15_000;

/** What stands before the event in a message of the WebSocket. */
const BEFORE = '{"type":"event","event":';

/** A listener that is told of one end, and of nothing behind it. */
function once(listener: Listener, end: () => void): Listener & { heard: () => void; stop: () => void; over: () => boolean } {
  let over = false;
  let watchdog = 0;
  const stop = () => {
    over = true;
    clearTimeout(watchdog);
    end();
  };
  const ended = (problem: Problem | undefined) => {
    if (over) return;
    stop();
    listener.ended(problem);
  };
  const heard = () => {
    clearTimeout(watchdog);
    if (!over) watchdog = window.setTimeout(() => ended(undefined), SILENCE);
  };
  heard();
  return {
    open: () => !over && listener.open(),
    events: (events) => !over && listener.events(events),
    ended,
    heard,
    stop,
    over: () => over,
  };
}

/** By a WebSocket. */
export const bySocket: Carrier = (session, after, listener) => {
  const address = new URL('/v1/ws', location.href);
  address.protocol = address.protocol === 'https:' ? 'wss:' : 'ws:';
  const socket = new WebSocket(address, 'belljar.v1');
  const asking = window.setInterval(() => {
    if (socket.readyState === WebSocket.OPEN) socket.send('{"type":"ping"}');
  }, ASK);
  const to = once(listener, () => {
    clearInterval(asking);
    // One that is closed while it opens is an error in the browser's own log.
    if (socket.readyState !== WebSocket.CONNECTING) socket.close();
  });
  socket.onopen = () => {
    if (to.over()) socket.close();
    else socket.send(JSON.stringify({ type: 'subscribe', session, after }));
  };
  socket.onmessage = ({ data }: MessageEvent<string>) => {
    to.heard();
    if (data.startsWith(BEFORE)) {
      const event = read(data.slice(BEFORE.length, -1));
      if (event) to.events([event]);
      return;
    }
    const said = JSON.parse(data) as { type: string; problem?: unknown };
    if (said.type === 'subscribed') to.open();
    else if (said.type === 'error') to.ended(Problem.said(said.problem));
    else if (said.type === 'unsubscribed') to.ended(undefined);
  };
  socket.onclose = () => to.ended(undefined);
  return to.stop;
};

/** As an event stream. */
export const byStream: Carrier = (session, after, listener) => {
  const abort = new AbortController();
  const to = once(listener, () => abort.abort());
  const run = async () => {
    const response = await fetch(`/v1/sessions/${encodeURIComponent(session)}/events`, {
      headers: { accept: 'text/event-stream', 'last-event-id': String(after) },
      credentials: 'same-origin',
      cache: 'no-store',
      signal: abort.signal,
    });
    if (!response.ok || !response.body) {
      return to.ended(Problem.from(response, await response.json().catch(() => undefined)));
    }
    to.open();
    let block: SessionEvent[] = [];
    const parser = createParser({
      onEvent: ({ data }) => {
        const event = read(data);
        if (event) block.push(event);
      },
    });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return to.ended(undefined);
      to.heard();
      parser.feed(value);
      if (block.length) to.events(block);
      block = [];
    }
  };
  run().catch(() => to.ended(undefined));
  return to.stop;
};
