/** All agents, by where they come from. */

import { useLoad } from '../../lib/load';
import { go, withQuery } from '../../router';
import { mayAdmin } from '../../state/me';
import { text } from '../../text';
import { Command, Empty, Waiting } from '../../ui/basics';
import { FilterBox, fits } from '../../ui/filter';
import { Name } from '../../ui/foreign';
import { ProblemPanel } from '../../ui/problem';
import { allAgents, byScope, hrefOf, type AgentRow, type Standing as Word } from './data';
import { Standing } from './standing';

const WORDS: readonly Word[] = ['ready', 'warnings', 'blocked', 'invalid', 'draft'];

export function AgentList({ query }: { query: URLSearchParams }) {
  const { data, problem, reload } = useLoad(allAgents, []);
  const filter = query.get('q') ?? '';
  const only = query.get('status');
  const narrow = (changes: Record<string, string | null>) =>
    go(withQuery(changes), { replace: true });
  const found = (data ?? []).filter((row) => fits(filter, row.name, row.description));
  const shown = found.filter((row) => only === null || row.standing === only);
  return (
    <div class="view agents">
      <header class="view-head">
        <h1>
          {text.agents.title}{' '}
          {data && <span class="note num">{text.agents.count(shown.length, data.length)}</span>}
        </h1>
        {mayAdmin.value && (
          <a class="button primary" href="/agents/new">
            {text.agents.new}
          </a>
        )}
      </header>
      {problem && <ProblemPanel problem={problem} retry={reload} />}
      {!data && !problem && <Waiting>{text.agents.loading}</Waiting>}
      {data && data.length > 0 && (
        <div class="agents-narrow">
          <FilterBox
            label={text.agents.filter}
            hint={text.agents.filterHint}
            value={filter}
            onChange={(value) => narrow({ q: value })}
            first
          />
          <Standings rows={found} only={only} onPick={(word) => narrow({ status: word })} />
        </div>
      )}
      {data?.length === 0 && (
        <Empty title={text.agents.none}>
          <p>{text.agents.noneHow}</p>
          <Command of={text.agents.noneCommand} />
        </Empty>
      )}
      {data && data.length > 0 && shown.length === 0 && (
        <Empty title={text.agents.noMatch}>
          <button type="button" onClick={() => narrow({ q: null, status: null })}>
            {text.agents.clear}
          </button>
        </Empty>
      )}
      <div class="agents-groups" data-steps>
        {byScope(shown).map(([scope, rows]) => (
          <section key={scope} aria-label={titleOf(scope)}>
            <h2>
              {titleOf(scope)} <span class="note num">{rows.length}</span>
            </h2>
            <ul class="plain agent-rows">
              {rows.map((row) => (
                <Row key={`${row.standing === 'draft'}${row.name}`} row={row} />
              ))}
            </ul>
          </section>
        ))}
      </div>
    </div>
  );
}

function titleOf(scope: string): string {
  const own = text.agents.scopes[scope];
  return own ?? text.agents.library(scope.replace(/^library\//, ''));
}

/** How many there are of each status, to look at them alone. */
function Standings(props: {
  rows: readonly AgentRow[];
  only: string | null;
  onPick: (word: Word | null) => void;
}) {
  const count = (word: Word) => props.rows.filter((row) => row.standing === word).length;
  const words = WORDS.filter((word) => count(word) > 0 || props.only === word);
  return (
    <div class="picks" role="group" aria-label={text.agents.standings}>
      <button
        type="button"
        class="small"
        aria-pressed={props.only === null}
        onClick={() => props.onPick(null)}
      >
        {text.agents.all} <span class="num">{props.rows.length}</span>
      </button>
      {words.map((word) => (
        <button
          key={word}
          type="button"
          class="small"
          aria-pressed={props.only === word}
          onClick={() => props.onPick(props.only === word ? null : word)}
        >
          <Standing of={word} /> <span class="num">{count(word)}</span>
        </button>
      ))}
    </div>
  );
}

function Row({ row }: { row: AgentRow }) {
  const isStuck = row.standing === 'blocked' || row.standing === 'invalid';
  const opens = row.standing !== 'draft' && row.definition !== undefined;
  return (
    <li class={`agent-row${isStuck ? ' stuck' : ''}`}>
      <div class="agent-line">
        {opens || row.scope === 'library/api' ? (
          <a class="agent-name" href={hrefOf(row)} data-step>
            <Name of={row.slug} />
          </a>
        ) : (
          <span class="agent-name" tabIndex={0} data-step>
            <Name of={row.slug} />
          </span>
        )}
        <Standing of={row.standing} />
        <span class="agent-what">
          <Name of={row.description} most={220} />
        </span>
        <span class="note num agent-tools">
          {row.tools !== undefined && text.agents.tools(row.tools)}
        </span>
      </div>
      {row.definition?.model_problem && (
        <p class="note agent-why">
          {text.begin.noModel} <Name of={row.definition.model_problem} most={400} />
        </p>
      )}
      {(isStuck || row.command) && <Why row={row} />}
    </li>
  );
}

/** Why it is not ready, and the command that makes it so. */
export function Why({ row }: { row: AgentRow }) {
  return (
    <div class="agent-why">
      {row.reasons.length > 0 && (
        <ul class="plain">
          {row.reasons.slice(0, 6).map((reason) => (
            <li key={reason}>
              <Name of={reason} most={400} />
            </li>
          ))}
        </ul>
      )}
      {row.command && (
        <div class="agent-command">
          <span class="note">
            {row.standing === 'draft' ? text.agents.promote : text.agents.unblock}
          </span>
          <Command of={row.command} />
        </div>
      )}
    </div>
  );
}
