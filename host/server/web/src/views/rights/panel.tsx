/** The rights of one agent, and why it may call a tool or not. */

import { useEffect, useRef } from 'preact/hooks';
import * as format from '../../lib/format';
import { useLoad } from '../../lib/load';
import { text } from '../../text';
import { Command, Waiting } from '../../ui/basics';
import { Name } from '../../ui/foreign';
import { ProblemPanel } from '../../ui/problem';
import { hrefOf, standingOf } from '../agents/data';
import { Standing } from '../agents/standing';
import { explain, type Explained, type LimitRow, type Rights } from './data';
import type { AgentRights } from './matrix';

const t = text.rights;

export function AgentPanel(props: {
  of: AgentRights;
  rights: Rights;
  tool: string | null;
  pick: (agent: string, tool: string | null) => void;
  close: () => void;
}) {
  const { of: agent, rights, tool } = props;
  const head = useRef<HTMLHeadingElement>(null);
  // The matrix keeps the focus where it is in sight; on a phone the panel covers it.
  useEffect(() => {
    if (matchMedia('(max-width: 1099.98px)').matches) head.current?.focus();
  }, []);
  return (
    <aside class="rights-panel" aria-label={t.panel}>
      <div class="panel-head">
        <h2 ref={head} tabIndex={-1}>
          <Name of={agent.agent} />
        </h2>
        <button type="button" class="small" onClick={props.close}>
          {t.closePanel}
        </button>
      </div>
      <p class="panel-state">
        <Standing of={standingOf(agent.status)} /> <a href={hrefOf(agent)}>{t.toAgent}</a>
      </p>
      {agent.reasons.length > 0 && (
        <ul class="plain panel-reasons">
          {agent.reasons.map((reason) => (
            <li key={reason}>
              <Name of={reason} most={400} />
            </li>
          ))}
        </ul>
      )}
      {agent.command && <Command of={agent.command} />}
      {tool !== null && <Why agent={agent.agent} tool={tool} />}
      <h3>{t.mounts}</h3>
      <Pairs of={Object.entries(agent.mounts)} />
      <h3>{t.hosts}</h3>
      <Hosts of={agent} />
      <h3>{t.secrets}</h3>
      <Names of={agent.secrets} />
      {typeof agent.auto_background_seconds === 'number' && (
        <>
          <h3>{t.subagents}</h3>
          <p class="note">{t.autoBackground(amount(agent.auto_background_seconds, 'seconds'))}</p>
        </>
      )}
      {agent.withheld.length > 0 && (
        <>
          <h3>{t.withheld}</h3>
          <ul class="plain withheld">
            {agent.withheld.map((one, at) => (
              <li key={at}>
                <Name of={one.wanted} most={400} /> <span class="note">{t.hostsBy(one.by)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
      <h3>{t.limits}</h3>
      <Limits of={agent.limits} rows={rights.limits} />
    </aside>
  );
}

function Why({ agent, tool }: { agent: string; tool: string }) {
  const { data, problem, reload } = useLoad(
    (signal) => explain(agent, tool, signal),
    [agent, tool],
  );
  return (
    <section class="why" aria-label={t.explainTitle(agent, tool)} aria-live="polite">
      <h3>
        <a href={`/tools/${encodeURIComponent(tool)}`}>
          <code>{tool}</code>
        </a>
        {data && (
          <span class={`why-answer is-${data.permission}`}>
            {' '}
            {t.may[data.permission] ?? data.permission}
          </span>
        )}
      </h3>
      {problem && <ProblemPanel problem={problem} retry={reload} />}
      {!data && !problem && <Waiting>{t.explaining}</Waiting>}
      {data && <Votes of={data} />}
    </section>
  );
}

function Votes({ of }: { of: Explained }) {
  const advice = of.decided_by && !of.command ? t.advice[of.decided_by] : undefined;
  return (
    <>
      <ul class="plain votes" aria-label={t.sources}>
        {of.votes.map((vote) => {
          const decided = vote.source === of.decided_by;
          return (
            <li
              key={vote.source}
              class={`vote${decided ? ' decided' : ''} is-${vote.verdict.split(' ')[0]}`}
            >
              <span class="vote-source">
                {t.by[vote.source] ?? vote.source}
                {decided && <span class="tag">{t.decided}</span>}
              </span>
              <span>
                <strong>{t.verdict[vote.verdict] ?? vote.verdict}</strong>
                <span class="note">
                  {' '}
                  <Name of={vote.why} most={400} />
                </span>
              </span>
            </li>
          );
        })}
      </ul>
      {of.command && (
        <>
          <p class="note">{t.toAllow}</p>
          <Command of={of.command} />
        </>
      )}
      {advice && <p class="note">{advice}</p>}
    </>
  );
}

function Pairs({ of }: { of: [string, string][] }) {
  if (of.length === 0) return <p class="note">{t.nothing}</p>;
  return (
    <dl class="pairs">
      {of.map(([name, value]) => (
        <div key={name}>
          <dt>
            <Name of={name} code />
          </dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Hosts({ of }: { of: AgentRights }) {
  if (of.hosts.length === 0) return <p class="note">{t.nothing}</p>;
  return (
    <ul class="plain">
      {of.hosts.map((list) => (
        <li key={list.source}>
          {list.rules.length === 0
            ? t.hostsNone
            : list.rules.map((rule) => <Name key={rule} of={`${rule} `} code />)}{' '}
          <span class="note">{t.hostsBy(list.source)}</span>
        </li>
      ))}
    </ul>
  );
}

function Names({ of }: { of: string[] }) {
  if (of.length === 0) return <p class="note">{t.nothing}</p>;
  return (
    <p>
      {of.map((name) => (
        <Name key={name} of={`${name} `} code />
      ))}
    </p>
  );
}

/** Each limit in its unit; those that differ from what holds by default are marked. */
function Limits({ of, rows }: { of: Record<string, number>; rows: readonly LimitRow[] }) {
  const known = new Map(rows.map((row) => [row.key, row]));
  return (
    <dl class="pairs limits">
      {Object.entries(of).map(([key, value]) => {
        const row = known.get(key);
        const differs =
          row && row.default !== value ? (value < row.default ? t.lowered : t.raised) : undefined;
        return (
          <div key={key} class={differs ? 'differs' : undefined} title={row?.why}>
            <dt>
              <code>{key}</code>
            </dt>
            <dd class="num">
              <span title={format.exact(value, row?.unit ?? '')}>
                {amount(value, row?.unit ?? '')}
              </span>
              {differs && <span class="note"> {differs}</span>}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

function amount(value: number, unit: string): string {
  switch (unit) {
    case 'bytes':
      return format.bytes(value);
    case 'fuel':
      return format.fuel(value);
    case 'tokens':
      return format.tokens(value);
    case 'seconds':
      return value < 120 || value % 60 !== 0 ? `${value} s` : `${value / 60} min`;
    default:
      return `${format.short(value)} ${unit}`;
  }
}
