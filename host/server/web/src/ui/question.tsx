/** A question of an agent: what it wants to do, with what it would touch, and the answers. */

import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { Problem } from '../api/problem';
import { mayTalk } from '../state/me';
import { answer, questions, type Question } from '../state/questions';
import type { Reach } from '../api/events';
import type { Asked } from '../state/fold';
import { callWords, telling } from '../state/words';
import { text } from '../text';
import { Block, Name } from './foreign';
import { ProblemPanel } from './problem';
import { Status } from './status';

/** A question as the list of the server has it. */
export function ofList(one: Question): Asked {
  const what =
    one.kind === 'permission'
      ? { ...one, kind: 'permission' as const, call_id: '' }
      : { kind: 'clarify' as const, question: one.question, options: one.options };
  return { id: one.id, agent: one.agent, at: one.asked, what };
}

/** Milliseconds for which a question that has just come takes no answer. */
const SETTLES = 500;

/** `compact`: in a banner, where the arguments are folded. */
export function QuestionBox(props: { session: string; asked: Asked; compact?: boolean; link?: string }) {
  const { session, asked, compact = false, link } = props;
  const [sending, setSending] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [gone, setGone] = useState(false);
  const [own, setOwn] = useState('');
  const field = useId();
  const box = useRef<HTMLDivElement>(null);
  // The list has the whole arguments, where the event has their beginning, and all words of a private question.
  const full = questions.value.find((one) => one.session === session && one.id === asked.id);
  const { what } = asked;
  const words = what.kind === 'clarify' ? (full?.kind === 'clarify' ? full.question : what.question) : '';
  // Nobody answers what they have not read.
  const unread = what.kind === 'clarify' && what.private === true && !full;
  const args = what.kind === 'permission' ? (full?.kind === 'permission' ? full.arguments : what.arguments) : '';

  const send = async (body: { answer: 'yes' | 'for_run' | 'no' } | { text: string }) => {
    if (sending) return;
    setSending(true);
    setProblem(undefined);
    try {
      await answer(session, asked.id, body);
      setGone(true);
      // The focus is not lost with the buttons.
      (box.current?.closest<HTMLElement>('[data-step], [data-steps]') ?? document.getElementById('main'))?.focus();
    } catch (error) {
      const found = Problem.of(error);
      if (found.status === 404) setGone(true);
      else setProblem(found);
    }
    setSending(false);
  };
  const [settled, setSettled] = useState(false);
  useEffect(() => {
    // Who was about to press or click something else has not meant this.
    const timer = setTimeout(() => setSettled(true), SETTLES);
    return () => clearTimeout(timer);
  }, []);
  const disabled = sending || !settled || unread || !mayTalk.value;

  return (
    <div ref={box} class={`question${compact ? ' compact' : ''}`} role="group" aria-label={text.asking.label(asked.agent)} data-question={`${session} ${asked.id}`}>
      <p class="question-head">
        <Status state="waiting" quiet />
        <span>
          <strong>
            <Name of={asked.agent} most={120} />
          </strong>{' '}
          {what.kind === 'permission' ? text.asking.permission : text.asking.clarify}{' '}
          {what.kind === 'permission' ? <Name of={what.tool} code most={80} /> : ''}
          {what.kind === 'permission' && telling({ tool: what.tool, arguments: args }) && (
            <>
              {': '}
              {callWords({ tool: what.tool, arguments: args } as never).what} <Name of={telling({ tool: what.tool, arguments: args })} code most={160} />
            </>
          )}
        </span>
        {link && (
          <a class="question-link" href={link}>
            {text.asking.open}
          </a>
        )}
      </p>
      {what.kind === 'clarify' && (
        <p class="question-words foreign" dir="auto">
          <Name of={words} most={2_000} />
        </p>
      )}
      {what.kind === 'permission' && (
        <>
          <details open={!compact}>
            <summary>{text.asking.arguments}</summary>
            <Block of={pretty(args)} label={text.asking.arguments} most={20_000} />
          </details>
          <Touch of={full?.kind === 'permission' ? full : what} />
        </>
      )}
      {problem && <ProblemPanel problem={problem} />}
      {gone ? (
        <p class="note" role="status">
          {text.asking.sending}
        </p>
      ) : what.kind === 'permission' ? (
        <div class="question-answers">
          <button type="button" class="primary" disabled={disabled} data-answer="a" onClick={() => void send({ answer: 'yes' })}>
            {text.asking.once} <kbd aria-hidden="true">a</kbd>
          </button>
          <button type="button" disabled={disabled} data-answer="A" onClick={() => void send({ answer: 'for_run' })}>
            {text.asking.turn} <kbd aria-hidden="true">A</kbd>
          </button>
          <button type="button" disabled={disabled} data-answer="x" title={text.asking.noTurn} onClick={() => void send({ answer: 'no' })}>
            {text.asking.no} <kbd aria-hidden="true">x</kbd>
          </button>
        </div>
      ) : (
        <form
          class="question-answers"
          onSubmit={(event) => {
            event.preventDefault();
            void send({ text: own });
          }}
        >
          {what.options.slice(0, 20).map((option, at) => (
            <button
              key={at}
              type="button"
              disabled={disabled}
              onClick={() => void send({ text: option })}
            >
              <Name of={option} most={120} />
            </button>
          ))}
          <label class="sr-only" for={field}>
            {text.asking.yourAnswer}
          </label>
          <input
            id={field}
            value={own}
            placeholder={what.options.length ? text.asking.or : text.asking.yourAnswer}
            onInput={(event) => setOwn(event.currentTarget.value)}
          />
          <button type="submit" class="primary" disabled={disabled || own.trim() === ''}>
            {text.asking.answer}
          </button>
        </form>
      )}
    </div>
  );
}

/** What the call could touch, as far as the server says it: an older event does not. */
function Touch({ of }: { of: Reach }) {
  if (!of.mounts && !of.hosts && !of.secrets) return null;
  const parts: { name: string; items: string[] }[] = [
    { name: text.asking.mounts, items: (of.mounts ?? []).map((one) => `${one.path} (${one.access})`) },
    { name: text.asking.hosts, items: of.hosts ?? [] },
    { name: text.asking.secrets, items: of.secrets ?? [] },
  ].filter((part) => part.items.length > 0);
  return (
    <p class="question-touch">
      {text.asking.touches}{' '}
      {parts.length === 0
        ? text.asking.nothing
        : parts.map((part, at) => (
            <span key={part.name}>
              {at > 0 && ' · '}
              {part.name}{' '}
              {part.items.slice(0, 12).map((item) => (
                <>
                  <Name of={item} code most={100} />{' '}
                </>
              ))}
            </span>
          ))}
    </p>
  );
}

/** JSON without the blanks between its parts. */
function bare(json: string): string {
  return json.replace(/("(?:[^"\\]|\\.)*")|\s+/g, (_all, text: string | undefined) => text ?? '');
}

/** JSON with its lines; anything else as it is. */
export function pretty(json: string): string {
  if (json.length > 200_000) return json;
  try {
    const value: unknown = JSON.parse(json);
    // Fields that come twice and long numbers would not be shown as they are.
    return JSON.stringify(value) === bare(json) ? JSON.stringify(value, null, 2) : json;
  } catch {
    return json;
  }
}

/** The question that a key is for: the one that has the focus, or the only one of the session that is
 * shown. One whose arguments are folded is not: nobody has seen them. */
function meant(): Element | undefined {
  const focused = document.activeElement?.closest('.question');
  const own = [...document.querySelectorAll('main .question')];
  const one = focused ?? (own.length === 1 ? own[0] : undefined);
  if (!one || one.querySelector('details:not([open])')) return undefined;
  const { top, bottom } = one.getBoundingClientRect();
  return bottom > 0 && top < innerHeight ? one : undefined;
}

/** Answers a question for which a key is meant. */
export function answerByKey(key: 'a' | 'A' | 'x'): boolean {
  const button = meant()?.querySelector<HTMLButtonElement>(`[data-answer="${key}"]:not(:disabled)`);
  button?.click();
  return button != null;
}
