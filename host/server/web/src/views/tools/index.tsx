/** Tools: what each takes, imports and asks for, and who may use it. */

import { useEffect, useState } from 'preact/hooks';
import { api, got, type Of } from '../../api/client';
import { useLoad } from '../../lib/load';
import { go, withQuery } from '../../router';
import type { ViewProps } from '../../routes';
import { text } from '../../text';
import { Command, Copy, Empty, Waiting } from '../../ui/basics';
import { FilterBox, fits } from '../../ui/filter';
import { Block, Name } from '../../ui/foreign';
import { ProblemPanel } from '../../ui/problem';
import { allRights, type Rights } from '../rights/data';
import { cellOf } from '../rights/matrix';
import '../shared.css';
import './tools.css';

const t = text.tools;

type Tool = Of<'ToolBody'>;

export default function Tools({ path, query }: ViewProps) {
  const { data, problem, reload } = useLoad((signal) => got(api.GET('/v1/tools', { signal })), []);
  const rights = useLoad((signal) => allRights(signal), []);
  const filter = query.get('q') ?? '';
  const narrow = (q: string) => go(withQuery({ q }), { replace: true });
  const tools: Tool[] = data?.tools ?? [];
  const shown = tools.filter((tool) =>
    fits(filter, tool.name, tool.description, tool.component ?? ''),
  );
  return (
    <div class="view tools">
      <header class="view-head">
        <h1>
          {t.title}{' '}
          {data && <span class="note num">{text.agents.count(shown.length, tools.length)}</span>}
        </h1>
        {tools.length > 0 && <FilterBox label={t.filter} value={filter} onChange={narrow} first />}
      </header>
      {problem && <ProblemPanel problem={problem} retry={reload} />}
      {!data && !problem && <Waiting>{t.loading}</Waiting>}
      {data && data.problems.length > 0 && <LeftOut of={data.problems} />}
      {data && tools.length === 0 && (
        <Empty title={t.none}>
          <p>{t.noneHow}</p>
          <Command of={t.noneCommand} />
        </Empty>
      )}
      {tools.length > 0 && shown.length === 0 && (
        <Empty title={t.noMatch}>
          <button type="button" onClick={() => narrow('')}>
            {text.agents.clear}
          </button>
        </Empty>
      )}
      <ul class="plain tool-list" data-steps>
        {shown.map((tool) => (
          <ToolRow
            key={tool.name}
            tool={tool}
            rights={rights.data}
            rightsProblem={rights.problem}
            open={path[0] === tool.name}
          />
        ))}
      </ul>
    </div>
  );
}

function LeftOut({ of }: { of: string[] }) {
  return (
    <section class="tools-out" aria-label={t.problems}>
      <h2>{t.problems}</h2>
      <ul class="plain">
        {of.map((problem) => (
          <li key={problem}>
            <Name of={problem} most={600} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function ToolRow(props: {
  tool: Tool;
  rights: Rights | undefined;
  rightsProblem: unknown;
  open: boolean;
}) {
  const { tool } = props;
  const [open, setOpen] = useState(props.open);
  useEffect(() => {
    if (!props.open) return;
    setOpen(true);
    document.getElementById(`tool-${tool.name}`)?.scrollIntoView({ block: 'start' });
  }, [props.open]);
  const toggle = (next: boolean) => {
    if (next === open) return;
    setOpen(next);
    go(`${next ? `/tools/${encodeURIComponent(tool.name)}` : '/tools'}${location.search}`, {
      replace: true,
    });
  };
  return (
    <li id={`tool-${tool.name}`}>
      <details open={open} onToggle={(event) => toggle(event.currentTarget.open)}>
        <summary data-step>
          <code class="tool-name">{tool.name}</code>
          <span class="tool-what">
            <Name of={tool.description} most={180} />
          </span>
          <span class="note tool-from">{t.origin[tool.origin] ?? tool.origin}</span>
        </summary>
        {open && <Details tool={tool} rights={props.rights} problem={props.rightsProblem} />}
      </details>
    </li>
  );
}

function Details({
  tool,
  rights,
  problem,
}: {
  tool: Tool;
  rights: Rights | undefined;
  problem: unknown;
}) {
  return (
    <div class="tool-details">
      <Block of={tool.description} label={tool.name} />
      <dl class="facts">
        {tool.component && tool.component !== tool.name && (
          <>
            <dt>{t.component}</dt>
            <dd>
              <Name of={tool.component} code />
            </dd>
          </>
        )}
        <dt>{t.asks}</dt>
        <dd>{asks(tool)}</dd>
        <dt>{t.imports}</dt>
        <dd>
          <Imports of={tool} />
        </dd>
        {tool.digest && (
          <>
            <dt>{t.digest}</dt>
            <dd class="tool-digest">
              <code>{tool.digest}</code> <Copy of={tool.digest} />
            </dd>
          </>
        )}
        <dt>{t.who}</dt>
        <dd>
          <Who tool={tool.name} rights={rights} problem={problem} />
        </dd>
      </dl>
      <details class="tool-schema">
        <summary>{t.schema}</summary>
        <Block of={JSON.stringify(tool.schema, null, 2)} label={t.schema} />
      </details>
    </div>
  );
}

function asks(tool: Tool): string {
  const { mounts, hosts, secrets } = tool.asks;
  const parts = [
    mounts ? t.asksMounts(mounts) : '',
    hosts.length > 0 ? t.asksHosts(hosts.join(', ')) : '',
    secrets.length > 0 ? t.asksSecrets(secrets.join(', ')) : '',
    tool.read_only ? t.readOnly : '',
  ].filter((part) => part !== '');
  return parts.length > 0 ? parts.join(' · ') : t.asksNothing;
}

function Imports({ of }: { of: Tool }) {
  if (of.origin === 'host') return <>{t.importsHost}</>;
  if (of.imports.length === 0) return <>{t.importsNone}</>;
  return (
    <ul class="plain imports">
      {of.imports.map((name) => (
        <li key={name}>
          <Name of={name} code />
        </li>
      ))}
    </ul>
  );
}

/** The agents that may use a tool, the first of them by name. */
function Who({
  tool,
  rights,
  problem,
}: {
  tool: string;
  rights: Rights | undefined;
  problem: unknown;
}) {
  if (problem) return <ProblemPanel problem={problem} />;
  if (!rights) return <Waiting>{t.whoLoading}</Waiting>;
  const column = rights.tools.findIndex((one) => one.name === tool);
  const having = (may: readonly string[]) =>
    rights.agents.filter((agent) => may.includes(cellOf(agent.cells[column]).may));
  const [allow, ask] = column < 0 ? [[], []] : [having(['allow', 'no-host']), having(['ask'])];
  if (allow.length + ask.length === 0) return <>{t.whoNone}</>;
  const named = [...ask, ...allow].slice(0, 12);
  return (
    <div class="who-may">
      <span>
        {t.whoAll(allow.length + ask.length, rights.agents.length)}
        {ask.length > 0 && `, ${t.whoAsk(ask.length)}`}
      </span>
      <ul class="plain chips">
        {named.map((agent) => (
          <li key={agent.agent} class={`chip${ask.includes(agent) ? ' is-ask' : ''}`}>
            <a
              href={`/rights?agent=${encodeURIComponent(agent.agent)}&tool=${encodeURIComponent(tool)}`}
            >
              <Name of={agent.agent} />
            </a>
          </li>
        ))}
      </ul>
      <a href={`/rights?tools=${encodeURIComponent(tool)}`}>{t.toRights}</a>
    </div>
  );
}
