/** Keys: each view says which it takes; the one that was shown last comes first. */

import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

/** A key and what it does; `false` = it was not for this one. */
export interface Binding {
  key: string;
  about: string;
  run: (event: KeyboardEvent) => void | boolean;
  /** It is taken while somebody types, too. */
  typing?: boolean;
  /** It goes on while the key is held. */
  held?: boolean;
}

const scopes = signal<readonly { current: readonly Binding[] }[]>([]);

/** The keys that are taken now, for the list behind `?`. */
export function listed(): Binding[] {
  const known = new Set<string>();
  return [...scopes.value]
    .reverse()
    .flatMap((scope) => scope.current)
    .filter((binding) => !known.has(binding.key) && known.add(binding.key));
}

/** Takes keys as long as the part is shown. */
export function useKeys(bindings: readonly Binding[]): void {
  const scope = useRef(bindings);
  scope.current = bindings;
  useEffect(() => {
    scopes.value = [...scopes.value, scope];
    return () => {
      scopes.value = scopes.value.filter((one) => one !== scope);
    };
  }, []);
}

function types(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable) return true;
  if (target instanceof HTMLInputElement) return !['checkbox', 'radio', 'button', 'submit', 'range'].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** Hands keys to whoever takes them. */
export function startKeys(): void {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = types(event.target);
    // An open dialog has its own keys.
    if (document.querySelector('dialog[open]') && event.key !== '?') return;
    for (const scope of [...scopes.value].reverse()) {
      for (const binding of scope.current) {
        if (binding.key !== event.key || (typing && !binding.typing)) continue;
        if (event.repeat && !binding.held) return event.preventDefault();
        if (binding.run(event) !== false) {
          event.preventDefault();
          return;
        }
      }
    }
  });
}

/** Moves the focus to the next (1) or the one before (-1) of what `j` and `k` go through: the
 * elements with `data-step` of the nearest `data-steps`. */
export function step(by: 1 | -1): void {
  const at = document.activeElement;
  const scope = at?.closest('[data-steps]') ?? document.querySelector('main [data-steps]') ?? document.querySelector('main');
  if (!scope) return;
  const all = [...scope.querySelectorAll<HTMLElement>('[data-step]')].filter((one) => one.getClientRects().length > 0);
  const here = all.findIndex((one) => one === at || one.contains(at));
  const next = here < 0 ? (by > 0 ? 0 : all.length - 1) : here + by;
  const to = all[next];
  if (!to) return;
  if (to.tabIndex < 0 && !to.hasAttribute('tabindex')) to.tabIndex = -1;
  to.focus({ preventScroll: true });
  to.scrollIntoView({ block: 'nearest' });
}
