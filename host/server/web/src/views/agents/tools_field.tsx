/** The tools of an agent, chosen from those that exist. */

import { useId, useState } from 'preact/hooks';
import { api, got, type Of } from '../../api/client';
import { line } from '../../lib/foreign';
import { useLoad } from '../../lib/load';
import { text } from '../../text';
import { FilterBox, fits } from '../../ui/filter';
import { ProblemPanel } from '../../ui/problem';
import type { Fields } from './form';
import { AllOrThese, Chips } from './names';

const t = text.editor;
const PATH = ['tools'] as const;

/** From so many tools on, there is a field to narrow them. */
const MANY = 12;

export function ToolsField({ form, disabled, put }: Fields) {
  const id = useId();
  const [filter, setFilter] = useState('');
  const { data, problem, reload } = useLoad((signal) => got(api.GET('/v1/tools', { signal })), []);
  if (form.isOther(PATH, 'list')) {
    return (
      <fieldset class="field">
        <legend>{t.tools}</legend>
        <p class="note">{t.toolsOther}</p>
      </fieldset>
    );
  }
  const chosen = form.list(PATH);
  const tools: Of<'ToolBody'>[] = data?.tools ?? [];
  const foreign = data
    ? (chosen ?? []).filter((name) => !tools.some((tool) => tool.name === name))
    : [];
  const turn = (name: string, on: boolean) => {
    const rest = (chosen ?? []).filter((one) => one !== name);
    put(PATH, on ? [...rest, name] : rest);
  };
  return (
    <fieldset class="field">
      <legend>{t.tools}</legend>
      <div class="field-row radios">
        <AllOrThese
          id={id}
          names={chosen}
          all={t.toolsAll}
          these={t.toolsOnly}
          put={(names) => put(PATH, names)}
        />
      </div>
      {problem && <ProblemPanel problem={problem} retry={reload} />}
      {chosen !== null && (
        <>
          {chosen.length === 0 && <p class="note">{t.toolsNone}</p>}
          {tools.length > MANY && !disabled && (
            <FilterBox label={t.filterTools} value={filter} onChange={setFilter} />
          )}
          <ul class="plain tool-picks">
            {tools
              .filter(
                (tool) => fits(filter, tool.name, tool.description) || chosen.includes(tool.name),
              )
              .map((tool) => (
                <li key={tool.name}>
                  <label class="inline" title={line(tool.description, 400)}>
                    <input
                      type="checkbox"
                      checked={chosen.includes(tool.name)}
                      onChange={(event) => turn(tool.name, event.currentTarget.checked)}
                    />
                    <code>{tool.name}</code>
                  </label>
                </li>
              ))}
          </ul>
          {foreign.length > 0 && (
            <>
              <p class="note">{t.toolsForeign}</p>
              <Chips names={foreign} disabled={disabled} remove={(name) => turn(name, false)} />
            </>
          )}
        </>
      )}
    </fieldset>
  );
}
