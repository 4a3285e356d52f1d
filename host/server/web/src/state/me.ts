/** Who looks at this page, and which page it is. */

import { computed, signal } from '@preact/signals';
import { lostKey, onUnauthorized, send } from '../api/client';
import { Problem } from '../api/problem';
import { isAnother } from './whose';

/** What the server says of us. */
export interface Caller {
  tenant: string;
  scope: string;
  actor: string;
  /** Whether what it may see is everybody's. */
  operator?: boolean;
  /** The digest of the page that the server has. */
  page: string;
  version: string;
  /** Whether keys are needed at all. */
  keys: boolean;
}

/** `out`: nobody is logged in. `lost`: somebody was, until the key ended. */
export type Me =
  | { state: 'unknown' }
  | { state: 'in'; me: Caller }
  | { state: 'out'; lost: boolean }
  | { state: 'unreachable'; problem: Problem };

export const me = signal<Me>({ state: 'unknown' });

/** The digest of this page, as its shell has it. */
const OWN = document.querySelector('meta[name="belljar-page"]')?.getAttribute('content') ?? '';

/** The server has another page by now. */
export const outdated = computed(() => {
  const now = me.value;
  return now.state === 'in' && OWN !== 'development' && OWN !== '' && now.me.page !== '' && now.me.page !== OWN;
});

/** Whose sessions and agents are shown. */
export const tenant = computed(() => (me.value.state === 'in' ? me.value.me.tenant : ''));

/** Whether the caller may change what the tenant has, or talk, or only look. */
export const scope = computed(() => (me.value.state === 'in' ? me.value.me.scope : 'read-only'));

/** Whether the caller may talk, answer and decide. */
export const mayTalk = computed(() => scope.value !== 'read-only');

/** Whether the caller may change agents and read the audit log. */
export const mayAdmin = computed(() => scope.value === 'admin');

onUnauthorized(() => {
  const before = me.value.state;
  me.value = { state: 'out', lost: before === 'in' || (me.value.state === 'out' && me.value.lost) };
});

/** The tabs of this browser, which have one login together: each says when it logs in or out. */
const tabs = new BroadcastChannel('belljar.login');

tabs.onmessage = ({ data }: MessageEvent<'in' | 'out'>) => {
  if (data === 'in') void lookMe();
  else if (me.peek().state === 'in') me.value = { state: 'out', lost: false };
};

/** Asks the server who we are. Where it is somebody else than this page was shown to, nothing of the
 * page stays: it is loaded anew. */
export async function lookMe(): Promise<void> {
  try {
    const caller = await send<Caller>('GET', '/v1/me');
    if (isAnother(caller)) {
      me.value = { state: 'unknown' };
      location.reload();
      return;
    }
    me.value = { state: 'in', me: caller };
  } catch (error) {
    const problem = Problem.of(error);
    if (problem.status !== 401) me.value = me.value.state === 'in' ? me.value : { state: 'unreachable', problem };
  }
}

/** Logs in by a key, or by a word that opens once. */
export async function login(body: { key: string } | { once: string }): Promise<void> {
  await send('POST', '/v1/login', body, { quiet: true });
  tabs.postMessage('in');
  me.value = { state: 'unknown' };
  await lookMe();
}

/** Logs out, here and on the server. */
export async function logout(): Promise<void> {
  await send('POST', '/v1/logout');
  tabs.postMessage('out');
  me.value = { state: 'out', lost: false };
}

export { lostKey };
