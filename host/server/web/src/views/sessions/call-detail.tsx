/** One call: what it was asked, what it cost, what it touched, what it was refused and by whom. */

import { useEffect } from 'preact/hooks';
import { send } from '../../api/client';
import { exact, millis } from '../../lib/format';
import { useLoad } from '../../lib/load';
import { place } from '../../router';
import { pathOf, type OpenSession, type ReceiptRow } from '../../state/open';
import { shortName } from '../../state/card';
import { callKey, type Call } from '../../state/fold';
import { telling } from '../../state/words';
import { text } from '../../text';
import { Command, Empty, Num, Waiting, When } from '../../ui/basics';
import { Block, Name } from '../../ui/foreign';
import { ProblemPanel } from '../../ui/problem';
import { pretty } from '../../ui/question';
import { Status } from '../../ui/status';
import { agentHref, callHref, glassHref } from './address';
import { CallLine, callState } from './call-line';
import { Listed } from './listed';
import { isRefused } from './pieces';
import { receiptOf, type Receipt } from './receipt';

export function CallDetail(props: { open: OpenSession; message: string; agent: string; step: number; id: string }) {
  const { open, message, agent, step, id } = props;
  void open.version.value;
  useEffect(() => {
    open.readReceipts(message).catch(() => {});
  }, [open, message]);
  const key = callKey(agent, step, id);
  const turn = open.turn(message);
  const call = turn?.calls.get(key);
  const row = open.receipts.get(message)?.byCall.get(key);
  const receipt = receiptOf(row);
  const live = open.status(message) === 'running';
  const inner = turn ? [...turn.calls.values()].filter((one) => one.agent === agent && one.parent === id && one.step === step) : [];
  const tool = call?.tool ?? row?.tool ?? '';
  const refused = (call && isRefused(call)) || (receipt?.denials.length ?? 0) > 0;
  return (
    <div class="detail">
      <header class="glass-head">
        <a class="button small" href={agent === turn?.root.path || !turn ? glassHref(open.id, message) : agentHref(open.id, message, agent)}>
          ← {agent === turn?.root.path || !turn ? text.glass.back : text.child.backTo(shortName(agent).slice(0, 40))}
        </a>
      </header>
      {!call && !row ? (
        open.ready.value ? (
          <Empty title={text.glass.noReceipt} />
        ) : (
          <Waiting>{text.frame.loading}</Waiting>
        )
      ) : (
        <div class="detail-body" data-step="" tabIndex={-1}>
          <h2>
            <Name of={tool} code most={80} /> <Status state={call ? callState(call) : row?.ok ? 'completed' : 'failed'} />
          </h2>
          {refused && <Refusals receipt={receipt} call={call} />}
          {!refused && (call?.error ?? bodyError(row)) && (
            <p class="call-error">
              <Name of={call?.error ?? bodyError(row) ?? ''} most={2_000} />
            </p>
          )}
          {refused && <Why open={open} message={message} agent={agent} tool={tool} target={targetOf(call, receipt)} opened={place.value.query.has('why')} />}
          <dl class="facts wide">
            <dt>{text.glass.agent}</dt>
            <dd>
              <Name of={agent} most={160} /> · {text.glass.step(step)}
            </dd>
            {call && (
              <>
                <dt>{text.glass.ending}</dt>
                <dd>
                  {call.ending ?? text.status.running} {call.ended !== undefined && <When at={call.ended} />}
                </dd>
              </>
            )}
          </dl>
          {receipt ? <Facts receipt={receipt} /> : <p class="note">{live && call?.ended === undefined ? text.glass.pending : open.receipts.has(message) ? text.glass.noReceipt : text.glass.loading}</p>}
          {call && (
            <section>
              <h3>{text.glass.arguments}</h3>
              <Block of={pretty(call.arguments)} label={text.glass.arguments} />
              {call.arguments.length >= 2_000 && <p class="note">{text.glass.argumentsCut}</p>}
            </section>
          )}
          {inner.length > 0 && (
            <section>
              <h3>{text.glass.nested}</h3>
              {inner.slice(0, 500).map((one) => (
                <CallLine key={one.key} session={open.id} message={message} call={one} live={live} stamp={open.version.value} />
              ))}
            </section>
          )}
          {receipt && <Outputs receipt={receipt} />}
          {call?.parent !== undefined && (
            <p class="note">
              <a href={callHref(open.id, message, { agent, step, id: call.parent })}>↑ {text.glass.call(shortName(call.parent))}</a>
            </p>
          )}
        </div>
      )}
    </div>
  );
}

function bodyError(row: ReceiptRow | undefined): string | undefined {
  return (row?.body as { error?: string } | null | undefined)?.error;
}

/** Where the call wanted to go. */
function targetOf(call: Call | undefined, receipt: Receipt | undefined): string | undefined {
  const target = receipt?.denials.find((one) => one.target !== undefined)?.target;
  if (target) return target;
  const words = call ? telling(call) : '';
  return /^(https?:\/\/|\/)/.test(words) ? words : undefined;
}

function Refusals({ receipt, call }: { receipt: Receipt | undefined; call: Call | undefined }) {
  const denials = receipt?.denials ?? [];
  return (
    <ul class="plain refusals">
      {denials.slice(0, 50).map((one, at) => (
        <li key={at} class="refusal">
          <span>
            {text.glass.refusedLine('')}
            <Name of={one.facts || one.what} most={600} />{' '}
            <span class="note">
              ({one.what}, {one.code.replaceAll('-', ' ')})
            </span>
          </span>
        </li>
      ))}
      {denials.length === 0 && (
        <li class="refusal">
          <span>
            {text.glass.refusedLine('')}
            <Name of={call?.error ?? text.status.refused} most={600} />
          </span>
        </li>
      )}
      {(receipt?.denials_dropped ?? 0) > 0 && <li class="note">{text.glass.moreDenials(receipt?.denials_dropped ?? 0)}</li>}
    </ul>
  );
}

/** The words of the sources. */
interface Explained {
  permission: string;
  decided_by?: string | null;
  votes: { source: string; verdict: string; why: string }[];
  grant?: string;
  command?: string;
}

const SEVERE: Record<string, string> = { allows: 'allows', asks: 'asks', refuses: 'refuses' };

function Why(props: { open: OpenSession; message: string; agent: string; tool: string; target: string | undefined; opened: boolean }) {
  const { open, message, agent, tool, target, opened } = props;
  const identity = open.turn(message)?.root.path === agent ? open.about.value?.agent : identityOf(open, message, agent);
  const asked = useLoad<Explained | undefined>(async () => {
    if (!identity) return undefined;
    const query = new URLSearchParams({ agent: identity, tool, ...(target && { target }) });
    return send('GET', `/v1/explain?${query.toString()}`);
  }, [identity, tool, target]);
  const found = asked.data;
  return (
    <details class="why" open={opened}>
      <summary>{text.glass.why}</summary>
      {asked.problem?.status === 404 && (
        <p>
          {text.glass.noTool} <a href="/tools">{text.glass.allTools}</a>
        </p>
      )}
      {asked.problem && asked.problem.status !== 404 && <ProblemPanel problem={asked.problem} />}
      {asked.loading && <Waiting>{text.frame.loading}</Waiting>}
      {found && (
        <>
          <h3 class="sr-only">{text.glass.sources}</h3>
          <ul class="plain votes">
            {found.votes.map((vote) => {
              const decides = vote.source === found.decided_by;
              return (
                <li key={vote.source} class={`vote is-${SEVERE[vote.verdict] ?? 'silent'}${decides ? ' decides' : ''}`}>
                  <strong>{vote.source}</strong> {vote.verdict}
                  {decides && <span class="tag">{text.glass.decided}</span>}
                  <span class="note">
                    <Name of={vote.why} most={400} />
                  </span>
                </li>
              );
            })}
            {found.decided_by == null && (
              <li class="vote is-refuses decides">
                <strong>{text.glass.sandbox}</strong> refuses
                <span class="tag">{text.glass.decided}</span>
                <span class="note">{text.glass.sandboxWhy}</span>
              </li>
            )}
          </ul>
          {found.command && (
            <>
              <p>{text.glass.allow}</p>
              <Command of={found.command} />
            </>
          )}
          {found.grant && !found.command && <Block of={found.grant} />}
        </>
      )}
    </details>
  );
}

/** The identity of a subagent, as its row has it. */
function identityOf(open: OpenSession, message: string, path: string): string | undefined {
  for (const row of open.subagents.get(message)?.values() ?? []) if (pathOf(row) === path) return row.agent;
  return undefined;
}

function Facts({ receipt }: { receipt: Receipt }) {
  const { times, bytes } = receipt;
  const parts = [
    ['queued', text.glass.queued, times.queued],
    ['opening', text.glass.opening, times.opening],
    ['guest', text.glass.guest, times.guest],
    ['waiting', text.glass.waitingHost, times.waiting],
  ] as const;
  const sum = Math.max(1, parts.reduce((all, [, , value]) => all + value, 0));
  return (
    <>
      <section>
        <h3>{text.glass.split}</h3>
        <div class="split" aria-hidden="true">
          {parts.map(([name, , value]) => (
            <span key={name} class={`split-${name}`} style={{ width: `${(100 * value) / sum}%` }} />
          ))}
        </div>
        <ul class="plain split-list">
          {parts.map(([name, words, value]) => (
            <li key={name}>
              <span class={`swatch split-${name}`} aria-hidden="true" /> {words} <span class="num">{millis(value / 1000)}</span>
            </li>
          ))}
        </ul>
      </section>
      <dl class="facts wide">
        <dt>{text.glass.took}</dt>
        <dd class="num" title={exact(times.total, 'µs')}>
          {millis(times.total / 1000)}
        </dd>
        <dt>{text.glass.fuel}</dt>
        <dd>
          <Num value={receipt.fuel} unit="fuel" />
        </dd>
        <dt>{text.glass.memory}</dt>
        <dd>
          <Num value={receipt.peak_memory} unit="B" />
        </dd>
        <dt>{text.glass.bytes}</dt>
        <dd class="byte-list">
          {(['read', 'written', 'sent', 'received', 'output'] as const).map((name) => (
            <span key={name}>
              <Num value={bytes[name]} unit="B" /> {text.glass[name]}
            </span>
          ))}
        </dd>
        <dt>{text.glass.hostCalls}</dt>
        <dd>{receipt.host_calls}</dd>
        <dt>{text.glass.hosts}</dt>
        <dd>
          <Listed of={receipt.hosts} />
        </dd>
        <dt>{text.glass.secrets}</dt>
        <dd>
          <Listed of={receipt.secrets_used} />
        </dd>
        <dt>{text.glass.filesRead}</dt>
        <dd>
          <Listed of={receipt.paths_read} />
        </dd>
        <dt>{text.glass.filesWritten}</dt>
        <dd>
          <Listed of={receipt.paths_written} />
        </dd>
        <dt>{text.glass.component}</dt>
        <dd>
          <code title={receipt.component}>{receipt.component.slice(0, 16)}</code>
        </dd>
      </dl>
    </>
  );
}

function Outputs({ receipt }: { receipt: Receipt }) {
  return (
    <>
      {receipt.logs.length > 0 && (
        <section>
          <h3>{text.glass.log}</h3>
          <Block of={receipt.logs.map((one) => `${one.level} ${one.message}`).join('\n')} label={text.glass.log} />
        </section>
      )}
      {receipt.stdout && (
        <section>
          <h3>{text.glass.stdout}</h3>
          <Block of={receipt.stdout} label={text.glass.stdout} />
        </section>
      )}
      {receipt.stderr && (
        <section>
          <h3>{text.glass.stderr}</h3>
          <Block of={receipt.stderr} label={text.glass.stderr} />
        </section>
      )}
    </>
  );
}
