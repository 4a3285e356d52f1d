/** Two runs side by side: their calls in order, and the first that differs. */

import { useEffect, useMemo } from 'preact/hooks';
import { api, got } from '../../api/client';
import { line } from '../../lib/foreign';
import { fuel, millis } from '../../lib/format';
import { useLoad } from '../../lib/load';
import { go, place } from '../../router';
import { sessions, watchSessions } from '../../state/sessions';
import { allReceipts, type ReceiptRow } from '../../state/open';
import { text } from '../../text';
import { Empty, Waiting } from '../../ui/basics';
import { Name } from '../../ui/foreign';
import { ProblemPanel } from '../../ui/problem';
import { Status } from '../../ui/status';
import { VirtualList } from '../../ui/virtual';
import { sessionHref } from './address';
import { pairs } from './pairs';

export default function Compare({ query }: { query: URLSearchParams }) {
  useEffect(watchSessions, []);
  const a = { session: query.get('a') ?? '', message: query.get('at') ?? '' };
  const b = { session: query.get('b') ?? '', message: query.get('bt') ?? '' };
  const set = (changes: Record<string, string>) => {
    // Both sides may say what they have at once.
    const next = new URLSearchParams(place.peek().query);
    for (const [name, value] of Object.entries(changes)) next.set(name, value);
    go(`/sessions/compare?${next.toString()}`, { replace: true });
  };
  const left = useReceipts(a);
  const right = useReceipts(b);
  const rows = useMemo(() => pairs(left.data ?? [], right.data ?? []), [left.data, right.data]);
  const first = rows.findIndex((row) => row.differs);
  return (
    <div class="view compare">
      <header class="view-head">
        <h1>{text.compare.title}</h1>
        {a.session && (
          <a class="button small" href={sessionHref(a.session)}>
            ← {text.compare.back}
          </a>
        )}
      </header>
      <p class="note">{text.compare.how}</p>
      <div class="compare-who">
        <Choice label={text.compare.a} of={a} set={(session, message) => set({ a: session, at: message })} />
        <Choice label={text.compare.b} of={b} set={(session, message) => set({ b: session, bt: message })} />
      </div>
      {left.problem && <ProblemPanel problem={left.problem} />}
      {right.problem && <ProblemPanel problem={right.problem} />}
      {(!b.session || !b.message) && <Empty title={text.compare.choose} />}
      {a.message && b.message && (left.loading || right.loading) && <Waiting>{text.glass.loading}</Waiting>}
      {left.data && right.data && b.message && (
        <>
          <p role="status" class={first < 0 ? 'banner-in' : 'banner-in amber'}>
            {first < 0 ? text.compare.same : text.compare.differs(first + 1)}
          </p>
          <div class="compare-rows">
            <VirtualList
              rows={rows}
              id={(row) => row.key}
              label={text.compare.table}
              estimate={() => 52}
              row={(row, at) => (
                <div class={`compare-row${row.differs ? ' differs' : ''}${at === first ? ' first' : ''}`} data-step="" tabIndex={-1}>
                  {at === first && <span class="tag">{text.compare.first}</span>}
                  <Side row={row.a} />
                  <Side row={row.b} />
                </div>
              )}
            />
          </div>
        </>
      )}
    </div>
  );
}

function useReceipts(of: { session: string; message: string }) {
  return useLoad(async () => (of.session && of.message ? (await allReceipts(of.session, of.message)).rows : undefined), [of.session, of.message]);
}

function Choice(props: { label: string; of: { session: string; message: string }; set: (session: string, message: string) => void }) {
  const { label, of, set } = props;
  const messages = useLoad(async () => {
    if (!of.session) return [];
    const page = await got(api.GET('/v1/sessions/{id}/messages', { params: { path: { id: of.session }, query: { limit: 200 } } }));
    return page.messages.filter((row) => row.role === 'assistant');
  }, [of.session]);
  const turns = messages.data ?? [];
  useEffect(() => {
    const last = turns.at(-1);
    if (of.session && last && !turns.some((row) => row.id === of.message)) set(of.session, last.id);
  }, [messages.data]);
  const known = sessions.value.some((row) => row.id === of.session);
  return (
    <fieldset class="compare-choice">
      <legend>{label}</legend>
      <label>
        {text.compare.session}
        <select value={of.session} onChange={(event) => set(event.currentTarget.value, '')}>
          <option value="">{text.compare.choose}</option>
          {!known && of.session && <option value={of.session}>{of.session}</option>}
          {sessions.value.map((row) => (
            <option key={row.id} value={row.id}>
              {line(row.title, 80)}
            </option>
          ))}
        </select>
      </label>
      <label>
        {text.compare.turn}
        <select value={of.message} onChange={(event) => set(of.session, event.currentTarget.value)}>
          {turns.map((row, at) => (
            <option key={row.id} value={row.id}>
              {text.glass.turn(at + 1)}
            </option>
          ))}
        </select>
      </label>
    </fieldset>
  );
}

function Side({ row }: { row: ReceiptRow | undefined }) {
  if (!row) return <div class="compare-side note">{text.compare.missing}</div>;
  return (
    <div class="compare-side">
      <span>
        <Status state={row.ok ? 'completed' : row.ending === 'denied' ? 'refused' : 'failed'} word={row.ending} /> <Name of={row.tool} code most={60} />
      </span>
      <span class="note num">
        <Name of={row.agent} most={80} /> · {text.glass.step(row.step)} · {millis(row.micros / 1000)} · {fuel(row.fuel)}
      </span>
    </div>
  );
}
