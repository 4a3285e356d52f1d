/** The answer of a cell as a shape: a filled square, a question, a stroke. */

import { text } from '../../text';
import type { Cell, May } from './matrix';

const t = text.rights;

function shape(may: May) {
  switch (may) {
    case 'allow':
      return (
        <>
          <rect x="2" y="2" width="12" height="12" rx="3" class="fill" />
          <path d="m5 8.2 2.1 2.1L11.2 6" class="cut" />
        </>
      );
    case 'no-host':
      return (
        <>
          <rect x="2.5" y="2.5" width="11" height="11" rx="3" class="edge" />
          <path d="M8 4.8v4M8 11.2v.1" class="line" />
        </>
      );
    case 'ask':
      return (
        <>
          <rect x="2.5" y="2.5" width="11" height="11" rx="3" class="edge" />
          <path d="M6.3 6.4a1.8 1.8 0 1 1 2.6 1.7c-.6.3-.9.6-.9 1.2M8 11.2v.1" class="line" />
        </>
      );
    case 'deny':
      return <path d="m5 5 6 6m0-6-6 6" class="line" />;
    case 'absent':
      return <path d="M6 8h4" class="line" />;
  }
}

/** The shape alone: whoever uses it says the words. */
export function Mark({ may }: { may: May }) {
  return (
    <svg class={`mark is-${may}`} viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      {shape(may)}
    </svg>
  );
}

/** What a cell says, in words. */
export function words(cell: Cell): string {
  const may = t.may[cell.may] ?? cell.may;
  return cell.by === null ? may : `${may}: ${t.by[cell.by] ?? cell.by}`;
}

/** The shapes and letters of the matrix. */
export function Legend() {
  return (
    <ul class="plain legend" aria-label={t.legend}>
      {(['allow', 'no-host', 'ask', 'deny', 'absent'] as const).map((may) => (
        <li key={may}>
          <Mark may={may} /> {t.may[may]}
        </li>
      ))}
      <li class="note">{t.narrowedBy}</li>
    </ul>
  );
}
