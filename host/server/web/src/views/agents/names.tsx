/** Parts of the form that take names: all, or only those that are named. */

import { text } from '../../text';
import { Name } from '../../ui/foreign';

const t = text.editor;

/** All, or only those that are named. */
export function AllOrThese(props: {
  /** Of the group of radio buttons. */
  id: string;
  names: readonly string[] | null;
  all: string;
  these: string;
  put: (names: string[] | undefined) => void;
}) {
  const { id, names, put } = props;
  const choices: [string, boolean, string[] | undefined][] = [
    [props.all, names === null, undefined],
    [props.these, names !== null, [...(names ?? [])]],
  ];
  return (
    <>
      {choices.map(([label, checked, value]) => (
        <label key={label} class="inline">
          <input type="radio" name={id} checked={checked} onChange={() => put(value)} />
          {label}
        </label>
      ))}
    </>
  );
}

/** Names, each with a way to take it out. */
export function Chips(props: {
  names: readonly string[];
  disabled: boolean;
  remove: (name: string) => void;
}) {
  return (
    <ul class="plain chips">
      {props.names.map((name) => (
        <li key={name} class="chip">
          <Name of={name} code />
          {!props.disabled && (
            <button
              type="button"
              class="chip-out"
              aria-label={t.remove(name)}
              onClick={() => props.remove(name)}
            >
              ×
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}
