/** A clock that ticks each second, for who is shown while something runs. */

import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';

const now = signal(Date.now());
let listeners = 0;
let timer = 0;

/** The time. It only ticks for `on`. */
export function useNow(on: boolean): number {
  useEffect(() => {
    if (!on) return;
    if (listeners++ === 0) {
      now.value = Date.now();
      timer = window.setInterval(() => {
        now.value = Date.now();
      }, 1_000);
    }
    return () => {
      if (--listeners === 0) clearInterval(timer);
    };
  }, [on]);
  return on ? now.value : now.peek();
}
