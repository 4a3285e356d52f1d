/** Usage by day, agent and model: bars, and a table with all numbers beside. */

import { api, got, type Of } from '../../api/client';
import * as format from '../../lib/format';
import { useLoad } from '../../lib/load';
import { go, withQuery } from '../../router';
import type { ViewProps } from '../../routes';
import { text } from '../../text';
import { Empty, Num, Waiting } from '../../ui/basics';
import { Name } from '../../ui/foreign';
import { ProblemPanel } from '../../ui/problem';
import { Table } from '../../ui/table';
import { Bars } from './bars';
import {
  daysBefore,
  everyDay,
  sums,
  tokens,
  total,
  type By,
  type Counts,
  type Sum,
} from './rows';
import '../shared.css';
import './usage.css';

const t = text.usage;

const RANGES = [7, 30, 90, 365] as const;

/** What the bars show. */
export type Measure = 'tokens' | 'turns' | 'tool_calls' | 'fuel';
const MEASURES: readonly Measure[] = ['tokens', 'turns', 'tool_calls', 'fuel'];

type Usage = Of<'Usage'>;

export default function UsageView({ query }: ViewProps) {
  const range = RANGES.find((days) => String(days) === query.get('days')) ?? 30;
  const today = new Date().toISOString().slice(0, 10);
  const since = daysBefore(today, range - 1);
  const by = (['day', 'agent', 'model'] as const).find((one) => one === query.get('by')) ?? 'day';
  const asked = by === 'day' ? { since } : { since, by };
  const { data, problem, reload } = useLoad<Usage>(
    (signal) => got(api.GET('/v1/usage', { params: { query: asked }, signal })),
    [since, by],
  );
  const measure = MEASURES.find((one) => one === query.get('show')) ?? 'tokens';
  const change = (changes: Record<string, string>) => go(withQuery(changes), { replace: true });
  return (
    <div class="view usage">
      <header class="view-head">
        <h1>{t.title}</h1>
        <Picks
          label={t.range}
          all={RANGES.map(String)}
          at={String(range)}
          words={(days) => t.days(Number(days))}
          pick={(days) => change({ days })}
        />
        <Picks
          label={t.by}
          all={['day', 'agent', 'model']}
          at={by}
          words={(one) => t.bys[one] ?? one}
          pick={(one) => change({ by: one })}
        />
        <Picks
          label={t.measure}
          all={MEASURES}
          at={measure}
          words={(one) => t.measures[one] ?? one}
          pick={(show) => change({ show })}
        />
      </header>
      {problem && <ProblemPanel problem={problem} retry={reload} />}
      {!data && !problem && <Waiting>{t.loading}</Waiting>}
      {data && <Shown usage={data} by={by} measure={measure} until={today} />}
    </div>
  );
}

function Picks(props: {
  label: string;
  all: readonly string[];
  at: string;
  words: (one: string) => string;
  pick: (one: string) => void;
}) {
  return (
    <div class="picks" role="group" aria-label={props.label}>
      {props.all.map((one) => (
        <button
          key={one}
          type="button"
          class="small"
          aria-pressed={one === props.at}
          onClick={() => props.pick(one)}
        >
          {props.words(one)}
        </button>
      ))}
    </div>
  );
}

function Shown({
  usage,
  by,
  measure,
  until,
}: {
  usage: Usage;
  by: By;
  measure: Measure;
  until: string;
}) {
  const days: Sum[] = usage.days.map(({ day, ...counts }) => ({ name: day, ...counts }));
  if (days.length === 0) {
    return (
      <Empty title={t.none}>
        <p>{t.noneHow}</p>
      </Empty>
    );
  }
  // What is asked for anew is of the other names for a moment.
  if (by !== 'day' && !usage.rows?.every((row) => row[by] != null)) return <Waiting>{t.loading}</Waiting>;
  const parts = by === 'day' ? days : sums(usage.rows ?? [], by);
  const drawn = by === 'day' ? everyDay(days, usage.since, until) : parts.slice(0, 20);
  return (
    <>
      <p class="usage-sum">
        <Sums of={total(parts)} />
      </p>
      <Bars
        label={t.chart(t.measures[measure] ?? measure, t.bys[by] ?? by)}
        rows={drawn.map((sum) => ({ name: sum.name || t.unnamed, value: valueOf(sum, measure) }))}
        words={(value) => wordsOf(value, measure)}
        upright={by === 'day'}
      />
      {by !== 'day' && parts.length > drawn.length && (
        <p class="note">{t.most(drawn.length, parts.length)}</p>
      )}
      <Numbers rows={by === 'day' ? [...days].reverse() : parts} by={by} />
      <p class="note">{t.utc}</p>
    </>
  );
}

function Sums({ of }: { of: Sum }) {
  return (
    <>
      <strong>{t.total}</strong> <Num value={tokens(of)} unit="tok" /> ·{' '}
      {format.counted(of.turns, 'turn')} · {format.counted(of.tool_calls, 'tool call')} ·{' '}
      <Num value={of.fuel} unit="fuel" />
    </>
  );
}

/** The number that a bar is as long as. */
export function valueOf(sum: Counts, measure: Measure): number {
  return measure === 'tokens' ? tokens(sum) : sum[measure];
}

function wordsOf(value: number, measure: Measure): string {
  switch (measure) {
    case 'tokens':
      return format.tokens(value);
    case 'fuel':
      return format.fuel(value);
    case 'turns':
    case 'tool_calls':
      return format.short(value);
  }
}

function Numbers({ rows, by }: { rows: readonly Sum[]; by: By }) {
  const column = (key: keyof Counts, head: string, unit?: 'tok' | 'fuel') => ({
    key,
    head,
    right: true,
    cell: (row: Sum) =>
      unit ? (
        <Num value={row[key]} unit={unit} />
      ) : (
        <span class="num" title={String(row[key])}>
          {format.short(row[key])}
        </span>
      ),
  });
  return (
    <Table
      caption={t.chart(t.columns.name, t.bys[by] ?? by)}
      rows={rows}
      id={(row) => row.name}
      columns={[
        { key: 'name', head: t.bys[by] ?? by, names: true, cell: (row) => (row.name ? <Name of={row.name} /> : t.unnamed) },
        column('turns', t.columns.turns),
        column('steps', t.columns.steps),
        column('input_tokens', t.columns.input, 'tok'),
        column('cached_tokens', t.columns.cached, 'tok'),
        column('output_tokens', t.columns.output, 'tok'),
        column('tool_calls', t.columns.calls),
        column('fuel', t.columns.fuel, 'fuel'),
      ]}
    />
  );
}
