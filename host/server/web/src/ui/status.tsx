/** A status: a shape, a colour and a word, so that none of them is needed alone. */

import { text } from '../text';

export type State =
  | 'queued'
  | 'running'
  | 'waiting'
  | 'completed'
  | 'partial'
  | 'failed'
  | 'cancelled'
  | 'interrupted'
  | 'refused';

function shape(state: State) {
  const ring = <circle cx="8" cy="8" r="5.5" class="ring" />;
  switch (state) {
    case 'queued':
      return ring;
    case 'running':
      return (
        <>
          {ring}
          <path d="M8 2.5a5.5 5.5 0 0 1 0 11z" class="fill" />
        </>
      );
    case 'waiting':
      return <path d="M8 2 14.5 13.5h-13zM8 6.2v3.4M8 11.4v.2" class="line" />;
    case 'completed':
      return (
        <>
          <circle cx="8" cy="8" r="6.2" class="fill" />
          <path d="m5 8.2 2.1 2.1L11.2 6" class="cut" />
        </>
      );
    case 'partial':
      return (
        <>
          {ring}
          <path d="M2.5 8a5.5 5.5 0 0 0 11 0z" class="fill" />
        </>
      );
    case 'failed':
      return <path d="m4 4 8 8m0-8-8 8" class="line" />;
    case 'refused':
      return <path d="M8 2.5a5.5 5.5 0 1 0 .01 0zM4.2 11.8l7.6-7.6" class="line" />;
    case 'cancelled':
    case 'interrupted':
      return (
        <>
          {ring}
          <path d="M5 8h6" class="line" />
        </>
      );
  }
}

/** `quiet`: the word is only for screen readers, because it stands beside it anyway. */
export function Status({ state, word, quiet = false }: { state: State; word?: string; quiet?: boolean }) {
  return (
    <span class={`status is-${state}`}>
      <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
        {shape(state)}
      </svg>
      <span class={quiet ? 'sr-only' : 'status-word'}>{word ?? text.status[state]}</span>
    </span>
  );
}
