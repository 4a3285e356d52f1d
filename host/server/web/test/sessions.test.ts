// The list of sessions: the newest are looked at again and again, older ones are read when asked for, and
// neither gets in the way of the other.

import { afterEach, expect, test, vi } from 'vitest';
import { me } from '../src/state/me';
import { more, moreSessions, narrow, sessions, touchSessions, type SessionRow } from '../src/state/sessions';

// Modules of the page look at their document when they are loaded.
vi.hoisted(() => {
  const nobody = () => undefined;
  const document = { visibilityState: 'visible', querySelector: nobody, addEventListener: nobody };
  Object.assign(globalThis, { document, window: globalThis });
});

interface Asked {
  path: string;
  answer: (body: unknown) => void;
}

const row = (id: string, updated: number) => ({ id, updated, running: false }) as SessionRow;

/** A server that answers when it is told to, and the requests that it has. */
function server(): Asked[] {
  const asked: Asked[] = [];
  vi.stubGlobal('fetch', (path: string, { signal }: { signal: AbortSignal }) =>
    new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(new DOMException('', 'AbortError')));
      asked.push({ path, answer: (body) => resolve(new Response(JSON.stringify(body))) });
    }));
  vi.useFakeTimers();
  me.value = { state: 'in' } as typeof me.value;
  return asked;
}

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('older sessions are read beside a look at the newest ones', async () => {
  const asked = server();
  sessions.value = [row('b', 2)];
  more.value = 'b';
  const older = moreSessions();
  // A second click asks for nothing more.
  await moreSessions();
  touchSessions();
  await vi.advanceTimersByTimeAsync(100);
  expect(asked.map(({ path }) => path.includes('before=b'))).toEqual([true, false]);
  asked[1]?.answer({ sessions: [row('c', 3), row('b', 2)], next: 'b' });
  asked[0]?.answer({ sessions: [row('a', 1)] });
  await older;
  await vi.advanceTimersByTimeAsync(0);
  expect(sessions.value.map(({ id }) => id)).toEqual(['c', 'b', 'a']);
  // It is looked at again by itself.
  await vi.advanceTimersByTimeAsync(5_000);
  expect(asked.length).toBe(3);
});

test('older ones of another list are given up without a word', async () => {
  const asked = server();
  more.value = 'b';
  const older = moreSessions();
  narrow({ kind: 'run' });
  await older;
  await vi.advanceTimersByTimeAsync(0);
  expect(asked.map(({ path }) => path.includes('kind=run'))).toEqual([false, true]);
  asked[1]?.answer({ sessions: [row('z', 9)] });
  await vi.advanceTimersByTimeAsync(0);
  expect(sessions.value.map(({ id }) => id)).toEqual(['z']);
});
