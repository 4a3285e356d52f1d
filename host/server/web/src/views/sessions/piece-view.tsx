/** One piece of a conversation. */

import { useState } from 'preact/hooks';
import { millis, percent, tokens } from '../../lib/format';
import type { OpenSession } from '../../state/open';
import { canceller, shortName } from '../../state/card';
import { text } from '../../text';
import { When } from '../../ui/basics';
import { Block, Name } from '../../ui/foreign';
import { Markdown } from '../../ui/markdown';
import { QuestionBox } from '../../ui/question';
import { Status, type State } from '../../ui/status';
import { glassHref } from './address';
import { Attachments } from './attachments';
import { CallLine, callState } from './call-line';
import { Card } from './card';
import type { Piece } from './pieces';
import type { Note } from '../../state/fold';

/** Calls in a row from which on they fold. */
const FOLD = 4;

/** Groups of calls that a person unfolded; they stay so when they leave the sight. */
const unfolded = new Set<string>();

export function PieceView({ open, piece, live, linked = true }: { open: OpenSession; piece: Piece; live: boolean; linked?: boolean }) {
  // What the fold holds changes in its place.
  void open.version.value;
  switch (piece.kind) {
    case 'user':
      return (
        <article class="said-by-you" aria-label={text.chat.you} data-step="" tabIndex={-1}>
          <p class="who-said">
            {piece.actor && piece.actor !== 'local' ? <Name of={piece.actor} most={60} /> : text.chat.you} <When at={piece.at} />
          </p>
          <Plain of={piece.text} />
        </article>
      );
    case 'head':
      return (
        <header class="answer-head">
          <span class="who-said">
            <strong>
              <Name of={piece.agent || text.chat.agent} most={80} />
            </strong>{' '}
            {piece.at > 0 && <When at={piece.at} />}
          </span>
          {linked && (
            <a class="note" href={glassHref(open.id, piece.message)}>
              {text.glass.show}
            </a>
          )}
        </header>
      );
    case 'said':
      return (
        <article class="answer" aria-label={shortName(piece.agent)} data-step="" tabIndex={-1} aria-busy={piece.live || undefined}>
          <Markdown of={piece.said.text} live={piece.live} />
        </article>
      );
    case 'text':
      return (
        <article class="answer" aria-label={shortName(piece.agent)} data-step="" tabIndex={-1}>
          <Markdown of={piece.text} />
        </article>
      );
    case 'calls':
      return <Calls open={open} piece={piece} live={live} />;
    case 'batch':
      return <Card open={open} message={piece.message} place={piece.place} parent={piece.parent} />;
    case 'note':
      return <NoteLine note={piece.note} />;
    case 'summary':
      return <Summary open={open} />;
    case 'end':
      return <End open={open} message={piece.message} />;
  }
}

/** A person's words are text, not markdown. */
function Plain({ of }: { of: string }) {
  const [all, setAll] = useState(false);
  const long = of.length > 4_000 || of.split('\n', 40).length > 30;
  if (!long) return <Block of={of} label={text.begin.text} />;
  return (
    <>
      <div class={all ? undefined : 'clamped'}>
        <Block of={of} label={text.begin.text} />
      </div>
      <button type="button" class="link" aria-expanded={all} onClick={() => setAll(!all)}>
        {all ? '▴' : '▾'} {text.foreign.more}
      </button>
    </>
  );
}

function Calls({ open, piece, live }: { open: OpenSession; piece: Extract<Piece, { kind: 'calls' }>; live: boolean }) {
  const [all, setAll] = useState(unfolded.has(piece.key));
  const stamp = open.version.value;
  const { calls } = piece;
  const quiet = calls.filter((call) => callState(call) === 'completed');
  const folds = calls.length >= FOLD && quiet.length > 1;
  const shown = folds && !all ? calls.filter((call) => !quiet.includes(call)) : calls;
  return (
    <div class="calls">
      {folds && (
        <button
          type="button"
          class="calls-fold"
          aria-expanded={all}
          data-step=""
          onClick={() => {
            if (all) unfolded.delete(piece.key);
            else unfolded.add(piece.key);
            setAll(!all);
          }}
        >
          {all ? '▾' : '▸'} <Status state="completed" quiet /> {text.chat.calls(quiet.length)}
        </button>
      )}
      {shown.slice(0, 400).map((call) => (
        <CallLine key={call.key} session={open.id} message={piece.message} call={call} live={live} stamp={stamp} />
      ))}
    </div>
  );
}

function NoteLine({ note }: { note: Note }) {
  const { event } = note;
  switch (event.type) {
    case 'retry':
      return (
        <p class="note-line">
          {text.chat.retry(event.attempt, millis(event.after_ms))} <Name of={event.reason} />
        </p>
      );
    case 'warning':
      return (
        <p class="note-line is-warning">
          <Name of={event.text ?? ''} most={1_000} />
        </p>
      );
    case 'subagent_background':
      return (
        <p class="note-line">
          {text.chat.leftInBackground} <Name of={event.id} code />
        </p>
      );
    case 'budget_warning':
      return <p class="note-line is-warning">{text.chat.budget(event.meter, percent(event.used, event.limit))}</p>;
    case 'hook_ran':
      return (
        <p class="note-line">
          {text.chat.hook(event.decision)} <Name of={event.hook} code />
        </p>
      );
    case 'history_compacting':
      return <p class="note-line">{text.chat.compacting(event.turns)}</p>;
    case 'history_compacted':
      return (
        <p class="note-line is-mark">
          {text.chat.compacted(event.turns, tokens(event.tokens_before), tokens(event.tokens_after))}
        </p>
      );
    case 'run_resumed':
      return <p class="note-line is-mark">{text.chat.resumed}</p>;
    case 'team_stage_started':
      return (
        <p class="note-line">
          {text.chat.stage(event.stage, event.of)} <Name of={event.agents.join(', ')} />
        </p>
      );
    case 'team_stage_finished':
      return (
        <p class="note-line">
          {text.chat.stageDone(event.stage)} {event.status} {event.error && <Name of={event.error} />}
        </p>
      );
  }
}

function Summary({ open }: { open: OpenSession }) {
  if (!open.summary) return null;
  return (
    <details class="note-line is-mark">
      <summary>{text.chat.upto}</summary>
      <Markdown of={open.summary.text} />
    </details>
  );
}

/** How an answer ended, with its questions while it has not. */
function End({ open, message }: { open: OpenSession; message: string }) {
  void open.version.value;
  const state = open.status(message);
  const turn = open.turn(message);
  const row = open.messages.find((one) => one.id === message);
  const error = turn?.root.error ?? (row?.metadata as { error?: string | null } | undefined)?.error ?? '';
  const by = canceller(row?.cancelled_by);
  const files = open.attachments.filter((one) => one.message === message);
  const own = turn ? [...turn.questions.values()].filter((asked) => asked.agent === turn.root.path) : [];
  return (
    <div class="answer-end">
      {own.map((asked) => (
        <QuestionBox key={asked.id} session={open.id} asked={asked} />
      ))}
      {turn && turn.root.todos.length > 0 && <Todos items={turn.root.todos} />}
      {files.length > 0 && <Attachments session={open.id} files={files} />}
      {state === 'running' && <RunningLine open={open} message={message} />}
      {state === 'interrupted' && (
        <div class="banner-in amber">
          <p>{text.chat.interrupted}</p>
          <p class="note">{text.chat.interruptedHow}</p>
        </div>
      )}
      {(state === 'partial' || state === 'failed' || state === 'cancelled') && (
        <p class={`ended is-${state}`}>
          <Status state={state as State} />{' '}
          <span>
            {state === 'cancelled' ? <Name of={text.chat.cancelled(by)} most={300} /> : state === 'partial' ? text.chat.partial : text.chat.failed}{' '}
            {state !== 'cancelled' && error && <Name of={error} most={1_000} />}
          </span>
        </p>
      )}
    </div>
  );
}

function RunningLine({ open, message }: { open: OpenSession; message: string }) {
  void open.version.value;
  const turn = open.turn(message);
  const waiting = turn ? turn.questions.size > 0 : false;
  return (
    <p class="ended">
      <Status state={waiting ? 'waiting' : 'running'} word={turn ? undefined : text.chat.starting} />
    </p>
  );
}

function Todos({ items }: { items: { content: string; status: string }[] }) {
  const mark: Record<string, State> = { completed: 'completed', in_progress: 'running', cancelled: 'cancelled' };
  return (
    <section class="todos" aria-label={text.chat.todos}>
      <h3>{text.chat.todos}</h3>
      <ul class="plain">
        {items.slice(0, 100).map((item, at) => (
          <li key={at}>
            <Status state={mark[item.status] ?? 'queued'} quiet /> <Name of={item.content} />
          </li>
        ))}
      </ul>
    </section>
  );
}
