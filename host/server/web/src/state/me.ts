/** Who looks at this page, and which page it is. */

import { computed, signal } from '@preact/signals';
import { lostKey, onUnauthorized, send } from '../api/client';
import { Problem } from '../api/problem';

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

/** Asks the server who we are. */
export async function lookMe(): Promise<void> {
  try {
    me.value = { state: 'in', me: await send<Caller>('GET', '/v1/me') };
  } catch (error) {
    const problem = Problem.of(error);
    if (problem.status !== 401) me.value = me.value.state === 'in' ? me.value : { state: 'unreachable', problem };
  }
}

/** Logs in by a key, or by a word that opens once. */
export async function login(body: { key: string } | { once: string }): Promise<void> {
  await send('POST', '/v1/login', body, { quiet: true });
  me.value = { state: 'unknown' };
  await lookMe();
}

/** Logs out, here and on the server. */
export async function logout(): Promise<void> {
  await send('POST', '/v1/logout');
  me.value = { state: 'out', lost: false };
}

export { lostKey };
