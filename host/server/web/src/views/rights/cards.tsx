/** The matrix where it is narrow: one column, each agent a row that opens. */

import { text } from '../../text';
import { Name } from '../../ui/foreign';
import type { Rights } from './data';
import { Mark, words } from './mark';
import { cellOf } from './matrix';

const t = text.rights;

export function Cards(props: {
  rights: Rights;
  shown: { rows: number[]; columns: number[] };
  pick: (agent: string, tool: string | null) => void;
}) {
  const { rights, shown } = props;
  return (
    <ul class="plain rights-cards" aria-label={t.matrix}>
      {shown.rows.map((row) => {
        const agent = rights.agents[row];
        if (!agent) return null;
        const cells = shown.columns.map((column) => cellOf(agent.cells[column]));
        const count = (...may: string[]) => cells.filter((cell) => may.includes(cell.may)).length;
        return (
          <li key={agent.agent}>
            <details>
              <summary>
                <span class="card-name">
                  <Name of={agent.agent} />
                </span>
                <span class="note">{t.granted(count('allow', 'no-host'), count('ask'))}</span>
              </summary>
              <button type="button" class="small" onClick={() => props.pick(agent.agent, null)}>
                {t.panel}
              </button>
              <ul class="plain">
                {shown.columns.map((column, at) => {
                  const tool = rights.tools[column]?.name ?? '';
                  const cell = cells[at];
                  return (
                    cell && (
                      <li key={tool}>
                        <button
                          type="button"
                          class="quiet card-cell"
                          onClick={() => props.pick(agent.agent, tool)}
                        >
                          <Mark may={cell.may} />
                          <code>{tool}</code>
                          <span class="note">{words(cell)}</span>
                        </button>
                      </li>
                    )
                  );
                })}
              </ul>
            </details>
          </li>
        );
      })}
    </ul>
  );
}
