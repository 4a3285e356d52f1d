/** The glass: what a turn did, as a waterfall, with what it touched and was refused. */

import { useEffect, useMemo } from 'preact/hooks';
import { api, got } from '../../api/client';
import { exact } from '../../lib/foreign';
import { fuel, millis, running as runningTime, short } from '../../lib/format';
import { useLoad } from '../../lib/load';
import { useNow } from '../../lib/now';
import { go, place } from '../../router';
import { shortName } from '../../state/card';
import { isRunning, type Turn } from '../../state/fold';
import type { OpenSession, ReceiptRow } from '../../state/open';
import { spans, type Span } from '../../state/spans';
import { callWords } from '../../state/words';
import { text } from '../../text';
import { Bar, Empty, Num, Waiting } from '../../ui/basics';
import { Name } from '../../ui/foreign';
import { Status, type State } from '../../ui/status';
import { VirtualList } from '../../ui/virtual';
import { agentHref, callHref, compareHref, glassHref } from './address';
import { callState } from './call-line';
import { isRefused } from './pieces';
import { effects } from './receipt';
import { Downloads } from './downloads';
import { Listed } from './listed';

export function Glass({ open, message, close }: { open: OpenSession; message: string; close: () => void }) {
  void open.version.value;
  const turn = open.turn(message);
  useEffect(() => {
    open.readReceipts(message).catch(() => {});
  }, [open, message]);
  const receipts = open.receipts.get(message);
  const live = open.status(message) === 'running';
  return (
    <div class="glass">
      <header class="glass-head">
        <h2>{text.glass.title}</h2>
        <TurnChoice open={open} message={message} />
        <button type="button" class="small quiet" aria-label={text.glass.hide} onClick={close}>
          ✕
        </button>
      </header>
      {turn ? (
        <Timeline open={open} turn={turn} live={live} />
      ) : receipts && receipts.rows.length > 0 ? (
        <p class="note pad">{text.glass.calls}: {receipts.rows.length}</p>
      ) : open.ready.value ? (
        <Empty title={text.glass.empty}>
          <p>{text.glass.emptyHow}</p>
        </Empty>
      ) : (
        <Waiting>{text.frame.loading}</Waiting>
      )}
      <Totals open={open} message={message} turn={turn} rows={receipts?.rows} live={live} />
      <footer class="glass-foot">
        <span class="note">{text.glass.receipts}</span>
        <Downloads session={open.id} message={message} />
        <a class="button small" href={compareHref(open.id, message)}>
          {text.glass.compare}
        </a>
      </footer>
    </div>
  );
}

function TurnChoice({ open, message }: { open: OpenSession; message: string }) {
  void open.version.value;
  const all = open.messages.filter((row) => row.role === 'assistant').map((row) => row.id);
  for (const id of open.fold.turns.keys()) if (!all.includes(id)) all.push(id);
  if (all.length < 2) return <span class="glass-turn" />;
  return (
    <select
      class="glass-turn"
      aria-label={text.glass.turns}
      value={message}
      onChange={(event) => go(glassHref(open.id, event.currentTarget.value))}
    >
      {all.map((id, at) => (
        <option key={id} value={id}>
          {text.glass.turn(at + 1)}
        </option>
      ))}
    </select>
  );
}

export function Timeline({ open, turn, live, root }: { open: OpenSession; turn: Turn; live: boolean; root?: string }) {
  void open.version.value;
  const now = useNow(live);
  const agent = root === undefined ? turn.root : (turn.agents.get(root) ?? turn.root);
  const rows = spans(turn, agent);
  const begin = rows.reduce((least, span) => Math.min(least, span.start), agent.started ?? turn.first);
  const end = live && isRunning(turn) ? Math.max(now, turn.last) : Math.max(turn.last, begin + 1);
  const last = rows.reduce((most, span) => Math.max(most, span.end ?? 0), 0);
  const width = Math.max(1, (root === undefined ? end : Math.max(last, agent.ended ?? end)) - begin);
  if (rows.length === 0) return <p class="note pad">{text.glass.empty}</p>;
  return (
    <VirtualList
      class="timeline"
      rows={rows}
      id={(span) => span.key}
      label={text.glass.timeline}
      role="list"
      estimate={() => 27}
      row={(span) => <SpanRow open={open} turn={turn} span={span} begin={begin} width={width} now={now} live={live} />}
    />
  );
}

function SpanRow(props: { open: OpenSession; turn: Turn; span: Span; begin: number; width: number; now: number; live: boolean }) {
  const { open, turn, span, begin, width, now, live } = props;
  const state: State =
    span.kind === 'call' && span.call
      ? callState(span.call)
      : span.kind === 'agent' && span.child
        ? span.child.state
        : span.end === undefined
          ? 'running'
          : 'completed';
  const going = span.end === undefined && live;
  const shown = span.end === undefined && !live ? 'cancelled' : state;
  const until = span.end ?? (going ? now : turn.last);
  const took = span.call?.ended !== undefined ? span.call.micros / 1000 : Math.max(0, until - span.start);
  const left = (100 * (span.start - begin)) / width;
  const wide = Math.max(0.6, Math.min(100 - left, (100 * Math.max(0, until - span.start)) / width));
  const waits = (span.waits ?? []).map((wait) => ({ start: wait.start, took: Math.max(0, (wait.end ?? until) - wait.start) }));
  const waited = waits.reduce((sum, wait) => sum + wait.took, 0);
  const href =
    span.kind === 'call' && span.call
      ? callHref(open.id, turn.message, span.call)
      : agentHref(open.id, turn.message, span.agent);
  const refused = span.call ? isRefused(span.call) : false;
  const words = span.call ? callWords(span.call) : undefined;
  const body = (
    <>
      <span class="span-name" style={{ paddingInlineStart: `${Math.min(span.depth, 8) * 12}px` }}>
        <Status state={shown} quiet />
        {span.kind === 'model' && <span>{`${text.glass.model} · ${text.glass.step(span.step)}`}</span>}
        {span.kind === 'agent' && (
          <strong>
            <Name of={shortName(span.agent)} most={60} />
          </strong>
        )}
        {span.call && words && (
          <>
            <Name of={span.call.tool} code most={40} />
            {words.on && words.on !== span.call.tool && (
              <span class="span-on">
                <Name of={words.on} most={60} />
              </span>
            )}
          </>
        )}
      </span>
      <span class="span-track" aria-hidden="true">
        <span class={`span-bar is-${span.kind} state-${shown}`} style={{ insetInlineStart: `${left}%`, width: `${wide}%` }} />
        {waits.map((wait) => (
          <span
            key={wait.start}
            class="span-bar is-wait"
            style={{ insetInlineStart: `${(100 * Math.max(0, wait.start - begin)) / width}%`, width: `${Math.min(100, (100 * wait.took) / width)}%` }}
          />
        ))}
      </span>
      <span class="span-took num">{refused ? text.status.refused : going ? runningTime(took) : millis(took)}</span>
      {waits.length > 0 && <span class="span-waited">{text.glass.waitedForYou(going ? runningTime(waited) : millis(waited))}</span>}
    </>
  );
  const attributes = { 'data-call': span.call?.id, 'data-refused': refused ? '' : undefined };
  if (span.kind === 'model' && span.depth === 0 && span.agent === turn.root.path) {
    return (
      <div class="span-row" data-step="" tabIndex={-1} {...attributes}>
        {body}
      </div>
    );
  }
  return (
    <a class={`span-row${refused ? ' refused' : ''}`} href={href} data-step="" {...attributes} aria-current={place.value.href === href ? 'true' : undefined}>
      {body}
    </a>
  );
}

function Totals(props: { open: OpenSession; message: string; turn: Turn | undefined; rows: readonly ReceiptRow[] | undefined; live: boolean }) {
  const { open, message, turn, rows, live } = props;
  void open.version.value;
  const row = open.messages.find((one) => one.id === message);
  const agent = open.about.value?.agent;
  const grants = useLoad(
    async () => (agent ? got(api.GET('/v1/grants', { params: { query: { agent } } })) : undefined),
    [agent],
  );
  const touched = useMemo(() => effects(rows ?? []), [rows]);
  const metadata = row?.metadata as { total?: { steps: number; input_tokens: number; output_tokens: number; fuel: number } } | undefined;
  const total = turn?.root.total ?? metadata?.total;
  const calls = turn ? [...turn.calls.values()] : [];
  const burnt = total?.fuel ?? calls.reduce((sum, call) => sum + call.fuel, 0);
  const refused = turn ? calls.filter(isRefused).length : touched.refused;
  const steps = total?.steps ?? [...(turn?.agents.values() ?? [])].reduce((sum, one) => sum + (one.taken ?? one.steps.length), 0);
  const limits = grants.data?.limits as Record<string, number> | undefined;
  const tokens = total ? total.input_tokens + total.output_tokens : undefined;
  const now = useNow(live);
  const began = turn?.first ?? row?.created;
  const took = began === undefined ? undefined : (turn && !isRunning(turn) ? turn.last : live ? now : turn?.last ?? began) - began;
  return (
    <div class="totals">
      <dl class="facts">
        <dt>{text.glass.files}</dt>
        <dd title={[...touched.written, ...touched.read].slice(0, 40).map((path) => exact(path)).join('\n')}>{text.glass.filesOf(touched.read.length, touched.written.length)}</dd>
        <dt>{text.glass.hosts}</dt>
        <dd>{touched.hosts.length ? touched.hosts.map((one) => <Name key={one} of={one} code most={80} />) : '0'}</dd>
        <dt>{text.glass.secrets}</dt>
        <dd>{touched.secrets.length ? touched.secrets.map((one) => <Name key={one} of={one} code most={80} />) : '0'}</dd>
        <dt>{text.glass.refused}</dt>
        <dd class={refused > 0 ? 'red' : undefined}>{short(refused)}</dd>
        <dt>{text.glass.calls}</dt>
        <dd>{short(turn ? calls.length : (rows?.length ?? 0))}</dd>
        {tokens !== undefined && (
          <>
            <dt>{text.glass.tokens}</dt>
            <dd>
              <Num value={tokens} unit="tok" />
            </dd>
          </>
        )}
      </dl>
      {touched.read.length + touched.written.length + touched.hosts.length > 0 && (
        <details>
          <summary class="note">{text.glass.list}</summary>
          <dl class="facts wide touched">
            <dt>{text.glass.filesWritten}</dt>
            <dd>
              <Listed of={touched.written} />
            </dd>
            <dt>{text.glass.filesRead}</dt>
            <dd>
              <Listed of={touched.read} />
            </dd>
          </dl>
        </details>
      )}
      <div class="bars">
        {limits?.['steps'] !== undefined && <Bar label={text.glass.steps} used={steps} of={limits['steps']} shown={`${steps} / ${limits['steps']}`} />}
        {limits?.['tokens'] !== undefined && tokens !== undefined && <Bar label={text.glass.tokens} used={tokens} of={limits['tokens']} />}
        {limits?.['fuel'] !== undefined && <Bar label={text.glass.fuel} used={burnt} of={limits['fuel']} shown={fuel(burnt)} />}
        {limits?.['timeout_seconds'] !== undefined && took !== undefined && (
          <Bar label={text.glass.time} used={took / 1000} of={limits['timeout_seconds']} shown={live ? runningTime(took) : millis(took)} />
        )}
      </div>
    </div>
  );
}
