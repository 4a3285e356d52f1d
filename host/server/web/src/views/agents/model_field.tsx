/** The model of an agent: a role, a model by name, or the operator's choice. */

import { useId, useState } from 'preact/hooks';
import { api, got } from '../../api/client';
import { line } from '../../lib/foreign';
import { useLoad } from '../../lib/load';
import { text } from '../../text';
import { Field, type Fields } from './form';

const t = text.editor;

/** The roles that a model can have. */
const ROLES = ['main', 'fast', 'strong', 'compaction', 'fallback'] as const;

const NAMED = 'by-name';

export function ModelField({ form, disabled, put }: Fields) {
  const id = useId();
  const [naming, setNaming] = useState(false);
  const role = form.scalar(['modelRole']);
  const model = form.scalar(['model']);
  const picked =
    role !== null
      ? `role:${String(role).trim().toLowerCase()}`
      : model !== null || naming
        ? NAMED
        : '';
  const pick = (value: string) => {
    setNaming(value === NAMED);
    if (value.startsWith('role:')) {
      put(['modelRole'], value.slice('role:'.length));
      return;
    }
    if (role !== null) put(['modelRole'], undefined);
    else if (value === '' && model !== null) put(['model'], undefined);
  };
  const { data } = useLoad((signal) => got(api.GET('/v1/roles', { signal })), []);
  const playedBy = (role: string) => data?.roles.find((one) => one.role === role);
  const label = (role: (typeof ROLES)[number]) => {
    const played = playedBy(role);
    return played?.model ? t.modelPlayed(role, line(played.model, 60), played.by_main) : t.modelRole(role);
  };
  const known = ROLES.map((one) => `role:${one}`).includes(picked as never);
  return (
    <>
      <Field label={t.model} id={id}>
        <select
          id={id}
          value={picked}
          disabled={disabled}
          onChange={(event) => pick(event.currentTarget.value)}
        >
          <option value="">{t.modelDefault}</option>
          {ROLES.map((one) => (
            <option key={one} value={`role:${one}`}>
              {label(one)}
            </option>
          ))}
          {picked.startsWith('role:') && !known && (
            <option value={picked}>{picked.slice('role:'.length)}</option>
          )}
          <option value={NAMED}>{t.modelNamed}</option>
        </select>
      </Field>
      {picked === NAMED && (
        <Field label={t.modelName} id={`${id}-name`}>
          <input
            id={`${id}-name`}
            value={String(model ?? '')}
            disabled={disabled || form.isOther(['model'], 'scalar')}
            list={`${id}-known`}
            autocomplete="off"
            spellcheck={false}
            maxLength={200}
            onInput={(event) => put(['model'], event.currentTarget.value.trim() || undefined)}
          />
          <datalist id={`${id}-known`}>
            {data?.models.map((one) => <option key={one} value={one} />)}
          </datalist>
        </Field>
      )}
    </>
  );
}
