/** Libraries that are installed, and what their vetting said. */

import { useState } from 'preact/hooks';
import { api, got, type Of } from '../../api/client';
import { useLoad } from '../../lib/load';
import { go } from '../../router';
import type { ViewProps } from '../../routes';
import { text } from '../../text';
import { Command, Empty, Waiting } from '../../ui/basics';
import { FilterBox, fits } from '../../ui/filter';
import { Name } from '../../ui/foreign';
import { ProblemPanel } from '../../ui/problem';
import { hrefOf, standingOf } from '../agents/data';
import { Standing } from '../agents/standing';
import '../shared.css';
import './libraries.css';

const t = text.libraries;

type Vetted = Of<'LibraryAgentBody'>;
type Library = Of<'LibraryBody'>;
type Libraries = Omit<Of<'Libraries'>, 'next'>;

/** All libraries, page by page. A library that goes on is there once, with all its agents. */
async function allLibraries(signal: AbortSignal): Promise<Libraries> {
  const all: Libraries = { libraries: [], rules: [] };
  for (let after: string | undefined; ;) {
    const query = after === undefined ? {} : { after };
    const page = await got(api.GET('/v1/libraries', { params: { query }, signal }));
    all.rules = page.rules;
    for (const library of page.libraries) {
      const known = all.libraries.find((one) => one.name === library.name);
      if (known) known.agents.push(...library.agents);
      else all.libraries.push(library);
    }
    if (!page.next) return all;
    after = page.next;
  }
}

export default function LibrariesView({ path }: ViewProps) {
  const { data, problem, reload } = useLoad(allLibraries, []);
  const only = data?.libraries.length === 1;
  return (
    <div class="view libraries">
      <header class="view-head">
        <h1>{t.title}</h1>
      </header>
      <p class="note libraries-about">{t.about}</p>
      {problem && <ProblemPanel problem={problem} retry={reload} />}
      {!data && !problem && <Waiting>{t.loading}</Waiting>}
      {data?.libraries.length === 0 && (
        <Empty title={t.none}>
          <p>{t.noneHow}</p>
          <Command of={t.noneCommand} />
        </Empty>
      )}
      <div class="library-list" data-steps>
        {data?.libraries.map((library) => (
          <LibraryBox
            key={library.name}
            library={library}
            rules={new Map(data.rules.map((rule) => [rule.name, rule.why]))}
            open={only || path[0] === library.name}
          />
        ))}
      </div>
    </div>
  );
}

function LibraryBox(props: {
  library: Library;
  rules: ReadonlyMap<string, string>;
  open: boolean;
}) {
  const { library } = props;
  const [open, setOpen] = useState(props.open);
  const suspicious = library.agents.filter((agent) => agent.suspicions.length > 0).length;
  const count = (status: string) =>
    library.agents.filter((agent) => agent.status === status).length;
  const toggle = (next: boolean) => {
    if (next === open) return;
    setOpen(next);
    go(next ? `/libraries/${encodeURIComponent(library.name)}` : '/libraries', { replace: true });
  };
  return (
    <details class="library" open={open} onToggle={(event) => toggle(event.currentTarget.open)}>
      <summary data-step>
        <h2>
          <Name of={library.name} />
        </h2>
        <span class="library-counts">
          {t.agents(library.agents.length)}
          {' · '}
          {t.ready(count('ready'))}
          {count('ready with warnings') > 0 && ` · ${t.warnings(count('ready with warnings'))}`}
          {count('blocked') > 0 && (
            <span class="count-blocked"> · {t.blocked(count('blocked'))}</span>
          )}
          {suspicious > 0 && <span class="count-suspicious"> · {t.suspicious(suspicious)}</span>}
        </span>
        <span class={library.state === 'ok' ? 'note' : 'library-state'}>
          <Name of={t.state[library.state] ?? library.state} />
        </span>
      </summary>
      {open && <Details library={library} rules={props.rules} />}
    </details>
  );
}

/** Agents that are shown before more are asked for. */
const FIRST = 40;

function Details({ library, rules }: { library: Library; rules: ReadonlyMap<string, string> }) {
  const [filter, setFilter] = useState('');
  const [only, setOnly] = useState(false);
  const [all, setAll] = useState(false);
  const found = library.agents.filter(
    (agent) => fits(filter, agent.slug, agent.file) && (!only || agent.suspicions.length > 0),
  );
  // What a person should look at comes first.
  const sorted = [...found].sort((a, b) => b.suspicions.length - a.suspicions.length);
  const shown = all ? sorted : sorted.slice(0, FIRST);
  const suspicious = library.agents.some((agent) => agent.suspicions.length > 0);
  const used = [
    ...new Set(library.agents.flatMap((agent) => agent.suspicions.map((one) => one.rule))),
  ];
  return (
    <div class="library-details">
      <dl class="facts">
        <dt>{t.source}</dt>
        <dd>
          <Name of={library.source} code />
        </dd>
        {library.revision && (
          <>
            <dt>{t.revision}</dt>
            <dd>
              <Name of={library.revision} code />
            </dd>
          </>
        )}
      </dl>
      {suspicious ? (
        <dl class="rules">
          {used.map((rule) => (
            <div key={rule}>
              <dt>
                <code>{rule}</code>
              </dt>
              <dd class="note">{rules.get(rule) ?? ''}</dd>
            </div>
          ))}
        </dl>
      ) : (
        <p>{t.noSuspicions}</p>
      )}
      <div class="libraries-narrow">
        <FilterBox label={t.filter} value={filter} onChange={setFilter} />
        {suspicious && (
          <label class="inline">
            <input
              type="checkbox"
              checked={only}
              onChange={(event) => setOnly(event.currentTarget.checked)}
            />
            {t.onlySuspicious}
          </label>
        )}
      </div>
      <ul class="plain vetted">
        {shown.map((agent) => (
          <AgentRow key={agent.agent} agent={agent} library={library.name} />
        ))}
      </ul>
      {shown.length < found.length && (
        <button type="button" class="small" onClick={() => setAll(true)}>
          {t.showAll(found.length)}
        </button>
      )}
      {library.left_out.length > 0 && (
        <section aria-label={t.leftOut}>
          <h3>{t.leftOut}</h3>
          <ul class="plain">
            {library.left_out.map((file) => (
              <li key={file.path}>
                <Name of={file.path} code />{' '}
                <span class="note">
                  <Name of={file.why} />
                </span>
              </li>
            ))}
          </ul>
        </section>
      )}
      <p class="note">{t.update}</p>
      <Command of={`belljar agents update ${library.name}`} />
      <p class="note">{t.remove}</p>
      <Command of={`belljar agents remove ${library.name}`} />
    </div>
  );
}

function AgentRow({ agent, library }: { agent: Vetted; library: string }) {
  return (
    <li class={agent.suspicions.length > 0 ? 'is-suspicious' : undefined}>
      <div class="vetted-head">
        <a href={hrefOf({ scope: `library/${library}`, slug: agent.slug })} data-step>
          <Name of={agent.slug} />
        </a>
        <Standing of={standingOf(agent.status)} />
        <span class="note vetted-file">
          <Name of={agent.file} code />
        </span>
      </div>
      {agent.suspicions.length > 0 && (
        <ul class="plain suspicions" aria-label={t.suspicions}>
          {agent.suspicions.map((one, at) => (
            <li key={at}>
              <code class="rule">{one.rule}</code>{' '}
              <span class="note num">{t.line(agent.file, one.line)}</span>{' '}
              <Name of={one.found} most={400} />
            </li>
          ))}
        </ul>
      )}
      {agent.reasons.length > 0 && agent.status === 'blocked' && (
        <ul class="plain">
          {agent.reasons.map((reason) => (
            <li key={reason}>
              <Name of={reason} most={400} />
            </li>
          ))}
        </ul>
      )}
      {agent.command && <Command of={agent.command} />}
      <details class="vetted-more">
        <summary>
          {t.asks} {list(agent.asks)}
          {agent.missing.length > 0 && (
            <span class="vetted-missing">
              {' · '}
              {t.missing} {list(agent.missing)}
            </span>
          )}
        </summary>
        <dl class="facts">
          <dt>{t.gets}</dt>
          <dd>
            <Name of={list(agent.gets)} most={2_000} />
          </dd>
          <dt>{t.pin}</dt>
          <dd class="digest">
            <code>{agent.digest}</code>
          </dd>
        </dl>
      </details>
    </li>
  );
}

function list(names: readonly string[]): string {
  return names.length > 0 ? names.join(', ') : t.nothing;
}
