/** A field that narrows a list: `/` moves there, `Esc` empties it and leaves. */

import { useRef } from 'preact/hooks';
import { useKeys } from '../lib/keys';
import { text } from '../text';

export function FilterBox(props: {
  label: string;
  hint?: string;
  value: string;
  onChange: (value: string) => void;
  /** `/` moves there: for one field of a view. */
  first?: boolean;
}) {
  const field = useRef<HTMLInputElement>(null);
  useKeys(
    props.first ? [{ key: '/', about: text.keys.search, run: () => field.current?.focus() }] : [],
  );
  return (
    <input
      ref={field}
      type="search"
      class="filter-box"
      aria-label={props.label}
      placeholder={props.hint ?? props.label}
      value={props.value}
      autocomplete="off"
      spellcheck={false}
      maxLength={200}
      onInput={(event) => props.onChange(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return;
        event.preventDefault();
        event.stopPropagation();
        if (props.value === '') event.currentTarget.blur();
        else props.onChange('');
      }}
    />
  );
}

/** Whether every word of a filter is in one of the texts, in any case. */
export function fits(filter: string, ...texts: (string | undefined)[]): boolean {
  const whole = texts.join('\n').toLowerCase();
  return filter
    .toLowerCase()
    .split(/\s+/)
    .every((word) => whole.includes(word));
}
