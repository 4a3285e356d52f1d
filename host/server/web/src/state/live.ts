/** What screen readers are told, and what the whole page knows about the connection. */

import { signal } from '@preact/signals';

/** The words that are read aloud next. */
export const spoken = signal('');

let queue: string[] = [];
let timer = 0;

/** Has something read aloud when there is a pause. The same words are not repeated at once. */
export function announce(words: string): void {
  if (queue.at(-1) !== words) queue.push(words);
  if (queue.length > 5) queue = queue.slice(-5);
  if (timer) return;
  timer = window.setTimeout(() => {
    timer = 0;
    spoken.value = queue.join('. ');
    queue = [];
  }, 700);
}
