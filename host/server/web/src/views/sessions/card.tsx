/** The subagent card, in the answer that started them. */

import { useState } from 'preact/hooks';
import { api, got } from '../../api/client';
import { Problem } from '../../api/problem';
import { clock, millis, running } from '../../lib/format';
import { useNow } from '../../lib/now';
import { place as here } from '../../router';
import { mayTalk } from '../../state/me';
import { cardHead, cardRow, type CardRow } from '../../state/card';
import type { BatchPlace, Turn } from '../../state/fold';
import type { OpenSession } from '../../state/open';
import { emptySession } from '../../state/fold';
import { text } from '../../text';
import { Num } from '../../ui/basics';
import { Name } from '../../ui/foreign';
import { ProblemPanel } from '../../ui/problem';
import { QuestionBox } from '../../ui/question';
import { Status } from '../../ui/status';
import { agentHref } from './address';

/** Rows from which on the done ones fold. */
const FOLD = 4;

const OVER: readonly string[] = ['completed', 'partial', 'failed', 'cancelled', 'interrupted'];

/** The rows of one card. A run whose events are not kept has those of the store. */
export function rowsOf(open: OpenSession, message: string, place: Pick<BatchPlace, 'children'>, parent: string): CardRow[] {
  const stored = open.subagents.get(message) ?? new Map();
  const turn = open.turn(message) ?? noTurn(message);
  const paths = place.children.length > 0 ? place.children : [...stored.keys()].filter((path) => parentOf(path) === parent || !path.includes('/'));
  const rows = paths.map((path) => cardRow(turn, path, stored));
  if (open.status(message) !== 'interrupted') return rows;
  // Nobody works on it any more, until it is gone on with.
  return rows.map((row) => (OVER.includes(row.state) ? row : { ...row, state: 'interrupted', now: undefined }));
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

function noTurn(message: string): Turn {
  const session = emptySession();
  const root = { ...agentless, items: [], steps: [], tools: [], todos: [] };
  void session;
  return { message, root, agents: new Map(), calls: new Map(), questions: new Map(), first: 0, last: 0, resumed: 0, budget: new Map() };
}

const agentless = {
  path: '',
  task: '',
  parent: undefined,
  state: 'completed' as const,
  model: '',
  started: undefined,
  ended: 0,
  error: undefined,
  tokens: undefined,
  taken: undefined,
  usage: undefined,
  total: undefined,
};

export function Card(props: { open: OpenSession; message: string; place: BatchPlace; parent: string }) {
  const { open, message, place, parent } = props;
  void open.version.value;
  const [unfolded, setUnfolded] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [ending, setEnding] = useState(false);
  const rows = rowsOf(open, message, place, parent);
  const head = cardHead(rows);
  const done = rows.filter((row) => OVER.includes(row.state) && row.state !== 'failed' && row.state !== 'interrupted');
  const folds = rows.length >= FOLD && done.length > 1;
  const shown = folds && !unfolded ? rows.filter((row) => !done.includes(row)) : rows;
  const alive = rows.filter((row) => !OVER.includes(row.state));

  const cancel = async (paths: string[]) => {
    setEnding(true);
    setProblem(undefined);
    try {
      for (const subagent of paths) {
        await got(api.POST('/v1/sessions/{id}/cancel', { params: { path: { id: open.id } }, body: { subagent } }));
      }
    } catch (error) {
      setProblem(Problem.of(error));
    }
    setEnding(false);
  };

  return (
    <section class="card" role="region" aria-label={text.card.title}>
      <header class="card-head">
        <h2>
          {text.card.title} <span class="card-done num">{text.card.done(head.done, head.total)}</span>
        </h2>
        <span class="card-counts">
          {(['running', 'waiting', 'queued', 'interrupted', 'partial', 'failed', 'cancelled'] as const)
            .filter((state) => head.counts[state])
            .map((state) => (
              <Status key={state} state={state} word={text.card.count(head.counts[state] ?? 0, text.status[state])} />
            ))}
        </span>
        {alive.length > 1 && mayTalk.value && (
          <button type="button" class="small" disabled={ending} onClick={() => void cancel(alive.map((row) => row.path))}>
            {text.card.cancelAll}
          </button>
        )}
      </header>
      {[...place.titles.values()].map((title, at) => (
        <p key={`title ${at}`} class="note">
          <Name of={title} most={200} />
        </p>
      ))}
      <ul class="plain card-rows">
        {folds && (
          <li>
            <button type="button" class="card-fold" aria-expanded={unfolded} onClick={() => setUnfolded(!unfolded)}>
              {unfolded ? `▾ ${text.card.fold}` : `▸ ${text.card.folded(done.length)}`}
            </button>
          </li>
        )}
        {shown.map((row) => (
          <Row key={row.path} open={open} message={message} row={row} ending={ending} cancel={() => void cancel([row.path])} />
        ))}
      </ul>
      {[...place.summaries.values()].map((summary, at) => (
        <p key={`end ${at}`} class="note">
          <Name of={summary} most={300} />
        </p>
      ))}
      {problem && <ProblemPanel problem={problem} />}
    </section>
  );
}

function Row(props: { open: OpenSession; message: string; row: CardRow; ending: boolean; cancel: () => void }) {
  const { open, message, row, ending, cancel } = props;
  const alive = row.state === 'running' || row.state === 'waiting';
  const href = agentHref(open.id, message, row.path);
  return (
    <li class={`card-row is-${row.state}`} data-child={row.path} data-status={row.state}>
      <div class="card-line">
        <Status state={row.state} quiet={row.state === 'running'} />
        <a class="card-name" href={href} data-step="" aria-current={here.value.href.startsWith(href) ? 'true' : undefined} title={text.card.open(row.name)}>
          <Name of={row.name} most={60} />
        </a>
        <span class="card-now">
          {row.now && alive ? (
            <>
              {row.now.what} {row.now.on && <Name of={row.now.on} code most={80} />}
            </>
          ) : (
            <Name of={row.task} most={160} />
          )}
        </span>
        <span class="card-facts num">
          {row.step > 0 && <span>{text.card.step(row.step)}</span>}
          {row.tokens !== undefined && <Num value={row.tokens} unit="tok" />}
          {row.fuel > 0 && <Num value={row.fuel} unit="fuel" />}
          <Took row={row} alive={alive} />
        </span>
        {(alive || row.state === 'queued') && mayTalk.value && (
          <button type="button" class="small quiet" disabled={ending} aria-label={text.card.cancelOne(row.name)} onClick={cancel}>
            {text.card.cancel}
          </button>
        )}
      </div>
      {alive && row.now && (
        <p class="card-task note">
          <Name of={row.task} most={160} />
        </p>
      )}
      {row.cancelledBy && (
        <p class="card-error is-cancelled">
          <Name of={text.card.cancelledBy(row.cancelledBy)} most={200} />
        </p>
      )}
      {row.error && !row.cancelledBy && row.state !== 'completed' && (
        <p class={`card-error is-${row.state}`}>
          <Name of={row.error} most={400} />
        </p>
      )}
      {row.children > 0 && <p class="note">{text.card.children(row.children)}</p>}
      {row.questions.map((asked) => (
        <QuestionBox key={asked.id} session={open.id} asked={asked} />
      ))}
    </li>
  );
}

function Took({ row, alive }: { row: CardRow; alive: boolean }) {
  const now = useNow(alive);
  if (row.started === undefined) return null;
  if (alive) return <span class="card-time">{running(now - row.started)}</span>;
  if (row.ended === undefined) return null;
  return (
    <span class="card-time" title={millis(row.ended - row.started)}>
      {clock(row.ended)}
    </span>
  );
}
