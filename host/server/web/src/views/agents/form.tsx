/** The fields of an agent, read from its text; each change of one is a change of the text. */

import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { useLoad } from '../../lib/load';
import { api, got } from '../../api/client';
import { text } from '../../text';
import { allAgents, slugOf } from './data';
import { FormText, type Path, type Unreadable, type Value } from './form_text';
import { ModelField } from './model_field';
import { NameList } from './name_list';
import { ToolsField } from './tools_field';

const t = text.editor;

/** How a field reads and changes the text. */
export interface Fields {
  form: FormText;
  disabled: boolean;
  put: (path: Path, value: Value) => void;
}

export function AgentForm(props: {
  form: FormText | Unreadable;
  content: string;
  put: (path: Path, value: Value) => void;
  disabled: boolean;
  isNew: boolean;
  self: string;
  show: (line: number) => void;
}) {
  const { form, disabled } = props;
  if (!(form instanceof FormText)) {
    if (props.content === '' && disabled) return null;
    return (
      <section class="pane pane-form" aria-label={t.form}>
        <h2>{t.form}</h2>
        <p class="form-broken">
          {t.broken[form.why]}{' '}
          {form.line > 0 && (
            <button type="button" class="link" onClick={() => props.show(form.line)}>
              {t.brokenLine(form.line)}
            </button>
          )}
        </p>
      </section>
    );
  }
  const fields: Fields = { form, disabled, put: props.put };
  return (
    <section class="pane pane-form" aria-label={t.form}>
      <h2>{t.form}</h2>
      <fieldset class="form" disabled={disabled}>
        {props.isNew && <NameField {...fields} />}
        <TextField
          {...fields}
          path={['description']}
          label={t.description}
          hint={t.descriptionHint}
          long
        />
        <ToolsField {...fields} />
        <ModelField {...fields} />
        <fieldset class="field-group">
          <legend>{t.limits}</legend>
          <p class="note">{t.limitHint}</p>
          <div class="field-row">
            <NumberField {...fields} path={['maxTurns']} label={t.maxTurns} most={1000} />
            <NumberField
              {...fields}
              path={['timeoutSeconds']}
              label={t.timeout}
              least={5}
              most={86_400}
            />
            <NumberField
              {...fields}
              path={['prefillTimeoutSeconds']}
              label={t.prefill}
              least={5}
              most={86_400}
            />
          </div>
        </fieldset>
        <ChoiceField
          {...fields}
          path={['visibility']}
          label={t.visibility}
          choices={t.visibilities}
        />
        <SubagentsFields {...fields} self={props.self} />
      </fieldset>
    </section>
  );
}

/** A label, its field, and a hint below. */
export function Field(props: {
  label: string;
  id: string;
  hint?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <div class="field">
      <label for={props.id}>{props.label}</label>
      {props.children}
      {props.hint && (
        <p class="note" id={`${props.id}-hint`}>
          {props.hint}
        </p>
      )}
    </div>
  );
}

function NameField({ form, disabled, put }: Fields) {
  const id = useId();
  const name = String(form.scalar(['name']) ?? '');
  const slug = slugOf(name);
  return (
    <Field
      label={t.name}
      id={id}
      hint={slug === '' ? t.nameNeeded : slug === name ? undefined : t.nameHint(slug)}
    >
      <input
        id={id}
        value={name}
        disabled={disabled}
        maxLength={64}
        autocomplete="off"
        spellcheck={false}
        aria-invalid={slug === ''}
        onInput={(event) => put(['name'], event.currentTarget.value)}
      />
    </Field>
  );
}

function TextField(props: Fields & { path: Path; label: string; hint?: string; long?: boolean }) {
  const { form, disabled, put, path } = props;
  const id = useId();
  const other = form.isOther(path, 'scalar');
  return (
    <Field label={props.label} id={id} hint={other ? t.toolsOther : props.hint}>
      <textarea
        id={id}
        rows={props.long ? 3 : 1}
        value={String(form.scalar(path) ?? '')}
        disabled={disabled || other}
        aria-describedby={`${id}-hint`}
        onInput={(event) => put(path, event.currentTarget.value)}
      />
    </Field>
  );
}

function NumberField(props: Fields & { path: Path; label: string; least?: number; most: number }) {
  const { form, disabled, put, path, least = 1, most } = props;
  const id = useId();
  const value = form.scalar(path);
  const bad = value !== null && (typeof value !== 'number' || value < least || value > most);
  return (
    <Field label={props.label} id={id}>
      <input
        id={id}
        type="number"
        inputMode="numeric"
        min={least}
        max={most}
        step={1}
        value={typeof value === 'number' ? value : ''}
        disabled={disabled}
        aria-invalid={bad}
        onInput={(event) => {
          const typed = event.currentTarget.value;
          if (typed === '') {
            // A browser gives nothing for what is no number yet, too.
            if (!event.currentTarget.validity.badInput) put(path, undefined);
            return;
          }
          const number = Number(typed);
          if (Number.isInteger(number)) put(path, number);
        }}
      />
    </Field>
  );
}

function ChoiceField(
  props: Fields & { path: Path; label: string; choices: Record<string, string>; words?: boolean },
) {
  const { form, disabled, put, path, choices } = props;
  const id = useId();
  const value = String(form.scalar(path) ?? '');
  return (
    <Field label={props.label} id={id}>
      <select
        id={id}
        value={value}
        disabled={disabled}
        onChange={(event) => {
          const picked = event.currentTarget.value;
          const typed = picked === 'true' || picked === 'false' ? picked === 'true' : picked;
          put(path, picked === '' ? undefined : typed);
        }}
      >
        {!(value in choices) && <option value={value}>{value}</option>}
        {Object.entries(choices).map(([word, label]) => (
          <option key={word} value={word}>
            {label}
          </option>
        ))}
      </select>
    </Field>
  );
}

function SubagentsFields({ self, ...fields }: Fields & { self: string }) {
  const agents = useLoad(allAgents, []);
  const tools = useLoad((signal) => got(api.GET('/v1/tools', { signal })), []);
  const names = (agents.data ?? []).map((row) => row.name).filter((name) => name !== self);
  return (
    <fieldset class="field-group">
      <legend>{t.subagents}</legend>
      <ChoiceField
        {...fields}
        path={['subagents', 'enabled']}
        label={t.subagentsEnabled}
        choices={t.enabled}
      />
      <div class="field-row">
        <NumberField
          {...fields}
          path={['subagents', 'max_concurrent']}
          label={t.maxConcurrent}
          most={1000}
        />
        <NumberField
          {...fields}
          path={['subagents', 'max_depth']}
          label={t.maxDepth}
          least={0}
          most={100}
        />
      </div>
      <NameList
        {...fields}
        path={['subagents', 'allowed_agents']}
        label={t.allowedAgents}
        all={t.allowedAgentsAll}
        none={t.nobody}
        known={names}
      />
      <NameList
        {...fields}
        path={['subagents', 'allowed_tools']}
        label={t.allowedTools}
        all={t.allowedToolsAll}
        none={t.noTools}
        known={(tools.data?.tools ?? []).map((tool) => tool.name)}
      />
    </fieldset>
  );
}
