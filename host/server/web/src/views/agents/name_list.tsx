/** A list of names in the text: all, or only those that are named. */

import { useId, useState } from 'preact/hooks';
import { text } from '../../text';
import type { Fields } from './form';
import type { Path } from './form_text';
import { AllOrThese, Chips } from './names';

const t = text.editor;

export function NameList(
  props: Fields & {
    path: Path;
    label: string;
    all: string;
    none: string;
    known: readonly string[];
  },
) {
  const { form, disabled, put, path, label, known } = props;
  const id = useId();
  const [typed, setTyped] = useState('');
  const names = form.list(path);
  const add = () => {
    const name = typed.trim();
    if (name !== '' && !(names ?? []).includes(name)) put(path, [...(names ?? []), name]);
    setTyped('');
  };
  return (
    <fieldset class="field">
      <legend>{label}</legend>
      <AllOrThese
        id={id}
        names={names}
        all={props.all}
        these={t.onlyThese}
        put={(chosen) => put(path, chosen)}
      />
      {names !== null && (
        <div class="names">
          {names.length === 0 && <p class="note">{props.none}</p>}
          <Chips
            names={names}
            disabled={disabled}
            remove={(name) =>
              put(
                path,
                names.filter((one) => one !== name),
              )
            }
          />
          {!disabled && (
            <div class="names-add">
              <input
                value={typed}
                list={`${id}-known`}
                aria-label={t.addName(label)}
                placeholder={t.addName(label)}
                autocomplete="off"
                spellcheck={false}
                maxLength={200}
                onInput={(event) => setTyped(event.currentTarget.value)}
                onKeyDown={(event) => {
                  if (event.key !== 'Enter') return;
                  event.preventDefault();
                  add();
                }}
              />
              <datalist id={`${id}-known`}>
                {known
                  .filter((name) => !names.includes(name))
                  .map((name) => (
                    <option key={name} value={name} />
                  ))}
              </datalist>
              <button type="button" class="small" onClick={add} disabled={typed.trim() === ''}>
                {t.add}
              </button>
            </div>
          )}
        </div>
      )}
    </fieldset>
  );
}
