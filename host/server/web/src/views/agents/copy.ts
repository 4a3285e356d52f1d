/** A copy of an agent's text under another name. */

import { FormText } from './form_text';

/** The text with another name; as it was where it has no fields that could be changed. */
export function copyOf(content: string, name: string): string {
  const form = FormText.of(content);
  return form instanceof FormText ? form.with(['name'], name) : content;
}

/** A name that nobody has: `NAME-copy`, `NAME-copy-2` and so on. */
export function freeName(name: string, taken: ReadonlySet<string>): string {
  const first = `${name}-copy`;
  for (let number = 1; ; number += 1) {
    const next = number === 1 ? first : `${first}-${number}`;
    if (!taken.has(next)) return next;
  }
}
