/** The address bar: every view has an address, and nothing else says which one is shown. */

import { computed, signal } from '@preact/signals';

/** The place that is shown. */
export interface Place {
  /** Parts of the path, decoded: `/sessions/x` is `['sessions', 'x']`. */
  path: readonly string[];
  query: URLSearchParams;
  /** The path and the query as they stand in the address bar. */
  href: string;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function read(): Place {
  const { pathname, search } = globalThis.location;
  const path = pathname.split('/').filter(Boolean).map(decoded);
  return { path, query: new URLSearchParams(search), href: pathname + search };
}

/** Where we are. */
export const place = signal<Place>(read());

/** The first part of the path. */
export const segment = computed(() => place.value.path[0] ?? 'sessions');

const leaving = new Set<(to: string) => boolean>();

/** Asks `mayLeave` before another view is shown; `false` keeps this one. Gives the way to stop. */
export function guardLeaving(mayLeave: (to: string) => boolean): () => void {
  leaving.add(mayLeave);
  return () => leaving.delete(mayLeave);
}

/** How many steps of this page lie behind: so it is known how far a step of the browser's own went. */
let steps: number = history.state?.step ?? 0;

function mayGo(to: string): boolean {
  for (const mayLeave of leaving) if (!mayLeave(to)) return false;
  return true;
}

/** Shows another place. `replace`: without a step to go back to. */
export function go(href: string, { replace = false } = {}): void {
  if (href === place.value.href || !mayGo(href)) return;
  if (!replace) steps += 1;
  const state = { belljar: true, step: steps };
  if (replace) history.replaceState(state, '', href);
  else history.pushState(state, '', href);
  place.value = read();
}

/** The browser has taken a step by itself: it is taken back where something would be lost. */
function stepped(to: number): void {
  const href = globalThis.location.pathname + globalThis.location.search;
  // The way back of a step that was taken back.
  if (to === steps && href === place.peek().href) return;
  if (!mayGo(href)) return history.go(steps - to);
  steps = to;
  place.value = read();
}

/** Goes to the place before, or to `otherwise` where there is none on this page. */
export function back(otherwise: string): void {
  if (history.state?.belljar) history.back();
  else go(otherwise, { replace: true });
}

/** An address of parts: each is encoded. */
export function to(...parts: (string | number)[]): string {
  return '/' + parts.map((part) => encodeURIComponent(String(part))).join('/');
}

/** The same address with other words behind the `?`; `null` takes one away. */
export function withQuery(changes: Record<string, string | null>): string {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  return globalThis.location.pathname + (text ? `?${text}` : '');
}

/** Follows the address bar, and makes links of this page change it without a reload. */
export function startRouter(): void {
  globalThis.addEventListener('popstate', ({ state }) => stepped((state as { step?: number } | null)?.step ?? 0));
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest?.('a');
    if (!link || link.target || link.hasAttribute('download')) return;
    const href = link.getAttribute('href');
    if (!href?.startsWith('/') || href.startsWith('//') || href.startsWith('/v1/')) return;
    event.preventDefault();
    go(href);
  });
}
