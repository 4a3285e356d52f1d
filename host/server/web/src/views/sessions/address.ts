/** The addresses of what belongs to a session. */

import { to } from '../../router';
import type { Call } from '../../state/fold';

/** What the address shows beside the conversation. */
export type Beside =
  | { kind: 'none' }
  | { kind: 'glass'; message: string }
  | { kind: 'call'; message: string; agent: string; step: number; id: string }
  | { kind: 'agent'; message: string; path: string };

export const sessionHref = (id: string) => to('sessions', id);
export const changesHref = (id: string) => to('sessions', id, 'changes');
export const glassHref = (id: string, message: string) => to('sessions', id, 'turn', message);
export const agentHref = (id: string, message: string, path: string) => to('sessions', id, 'turn', message, 'agent', path);
export const callHref = (id: string, message: string, call: Pick<Call, 'agent' | 'step' | 'id'>) =>
  to('sessions', id, 'turn', message, 'call', call.agent, call.step, call.id);
export const compareHref = (a: string, message: string) => `/sessions/compare?${new URLSearchParams({ a, at: message }).toString()}`;

/** Reads the parts behind the session's id. */
export function beside(path: readonly string[]): Beside {
  const [word, message, kind, ...rest] = path;
  if (word !== 'turn' || !message) return { kind: 'none' };
  if (kind === 'agent' && rest[0]) return { kind: 'agent', message, path: rest.join('/') };
  const step = Number(rest[1]);
  if (kind === 'call' && rest[0] && rest[2] && Number.isInteger(step)) {
    return { kind: 'call', message, agent: rest[0], step, id: rest[2] };
  }
  return { kind: 'glass', message };
}
