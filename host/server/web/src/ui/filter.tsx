/** A field that narrows a list: `Esc` empties it, and then leaves it. */

export function FilterBox(props: {
  label: string;
  hint?: string;
  value: string;
  onChange: (value: string) => void;
  /** `/` moves there: for one field of a view. */
  first?: boolean;
}) {
  return (
    <input
      type="search"
      class="filter-box"
      data-search={props.first ? '' : undefined}
      aria-label={props.label}
      placeholder={props.hint ?? props.label}
      value={props.value}
      autocomplete="off"
      spellcheck={false}
      maxLength={200}
      onInput={(event) => props.onChange(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || props.value === '') return;
        event.preventDefault();
        event.stopPropagation();
        props.onChange('');
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
