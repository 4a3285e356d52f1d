/** Rights: each agent a row, each tool a column, in each cell the answer and who gave it. */

import { useMemo, useState } from 'preact/hooks';
import { useKeys } from '../../lib/keys';
import { useLoad } from '../../lib/load';
import { useWide } from '../../lib/wide';
import { go, withQuery } from '../../router';
import type { ViewProps } from '../../routes';
import { text } from '../../text';
import { Empty, Waiting } from '../../ui/basics';
import { FilterBox } from '../../ui/filter';
import { ProblemPanel } from '../../ui/problem';
import { Cards } from './cards';
import { allRights, type Rights } from './data';
import { Grid } from './grid';
import { Legend } from './mark';
import { narrowed } from './matrix';
import { AgentPanel } from './panel';
import '../shared.css';
import './rights.css';

const t = text.rights;

export default function RightsView({ query }: ViewProps) {
  const [some, setSome] = useState<Rights>();
  const whole = useLoad((signal) => allRights(signal, setSome), []);
  const { problem, reload } = whole;
  // The first rows are looked at while the others are worked out.
  const data = whole.data ?? some;
  const wide = useWide(800);
  const filter = {
    agent: query.get('agents') ?? '',
    tool: query.get('tools') ?? '',
    usedOnly: query.get('used') === 'true',
  };
  const shown = useMemo(
    () => narrowed(data?.agents ?? [], data?.tools ?? [], filter),
    [data, filter.agent, filter.tool, filter.usedOnly],
  );
  const change = (changes: Record<string, string | null>, replace = true) =>
    go(withQuery(changes), { replace });
  const picked = data?.agents.find((agent) => agent.agent === query.get('agent'));
  const tool = query.get('tool');
  const close = () => {
    if (!picked) return false;
    change({ agent: null, tool: null });
    return true;
  };
  useKeys([{ key: 'Escape', about: text.keys.back, run: close }]);
  const pick = (agent: string, tool: string | null) => change({ agent, tool });
  const empty = shown.rows.length === 0 || shown.columns.length === 0;
  return (
    <div class={`rights${picked ? ' with-panel' : ''}`}>
      <div class="rights-main">
        <header class="view-head">
          <h1>
            {t.title}{' '}
            {data && data.agents.length > 0 && (
              <span class="note num">{t.size(shown.rows.length, shown.columns.length)}</span>
            )}
          </h1>
        </header>
        {problem && <ProblemPanel problem={problem} retry={reload} />}
        {!whole.data && !problem && <Waiting>{t.loading}</Waiting>}
        {data?.agents.length === 0 && (
          <Empty title={t.none}>
            <p>{t.noneHow}</p>
            <a href="/agents">{text.agents.toList}</a>
          </Empty>
        )}
        {data && data.agents.length > 0 && (
          <>
            <div class="rights-narrow">
              <FilterBox
                label={t.filterAgents}
                value={filter.agent}
                onChange={(agents) => change({ agents })}
                first
              />
              <FilterBox
                label={t.filterTools}
                value={filter.tool}
                onChange={(tools) => change({ tools })}
              />
              <label class="inline">
                <input
                  type="checkbox"
                  checked={filter.usedOnly}
                  onChange={(event) =>
                    change({ used: event.currentTarget.checked ? 'true' : null })
                  }
                />
                {t.usedOnly}
              </label>
            </div>
            <Legend />
            {empty ? (
              <Empty title={t.noMatch}>
                <button
                  type="button"
                  onClick={() => change({ agents: null, tools: null, used: null })}
                >
                  {t.clear}
                </button>
              </Empty>
            ) : wide ? (
              <Grid
                rights={data}
                shown={shown}
                at={{ agent: picked?.agent ?? null, tool }}
                pick={pick}
              />
            ) : (
              <Cards rights={data} shown={shown} pick={pick} />
            )}
          </>
        )}
      </div>
      {data && picked && (
        <AgentPanel
          key={picked.agent}
          of={picked}
          rights={data}
          tool={tool}
          pick={pick}
          close={close}
        />
      )}
    </div>
  );
}
