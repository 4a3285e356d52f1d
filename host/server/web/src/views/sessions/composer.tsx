/** Where a person says something. What was typed survives a change of views and a reload. */

import type { ComponentChildren } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { text } from '../../text';
import { draftOf, keepDraft, NEW } from './draft';

/** Whether the next one goes on where the last one was written in. */
let goesOn = false;

/** What is said begins a session: the person goes on writing there. */
export function goOn(): void {
  goesOn = true;
}

export function Composer(props: {
  send: (words: string) => Promise<boolean>;
  sending: boolean;
  disabled: boolean;
  focus?: boolean;
  /** Where the draft is kept. */
  draft?: string;
  /** Other things that can be done here. */
  children?: ComponentChildren;
  /** Sending has to wait: a turn runs. */
  busy?: boolean;
}) {
  const draft = props.draft ?? NEW;
  const [words, setWords] = useState(() => draftOf(draft));
  const field = useRef<HTMLTextAreaElement>(null);
  const id = useId();
  const sending = useRef(false);
  useEffect(() => {
    // What is on its way is kept until it has arrived.
    if (!sending.current || words) keepDraft(draft, words);
  }, [words]);
  useEffect(() => {
    if (props.focus || goesOn) field.current?.focus();
    goesOn = false;
  }, []);
  useLayoutEffect(() => {
    const it = field.current;
    if (!it) return;
    it.style.height = 'auto';
    it.style.height = `${Math.min(it.scrollHeight + 2, 220)}px`;
  }, [words]);
  const can = !props.disabled && !props.sending && !props.busy && words.trim() !== '';
  const send = async () => {
    if (!can) return;
    const sent = words;
    sending.current = true;
    setWords('');
    const arrived = await props.send(sent);
    sending.current = false;
    if (!arrived) setWords(sent);
    else if (draftOf(draft) === sent) keepDraft(draft, '');
  };
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <label class="sr-only" for={id}>
        {text.begin.text}
      </label>
      <textarea
        ref={field}
        id={id}
        rows={1}
        dir="auto"
        data-composer=""
        value={words}
        placeholder={props.disabled ? text.begin.readOnly : text.begin.placeholder}
        disabled={props.disabled}
        onInput={(event) => setWords(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            void send();
          }
        }}
      />
      <div class="composer-row">
        <span class="note composer-note">{text.begin.sendKey}</span>
        {props.children}
        <button type="submit" class="primary" disabled={!can}>
          {props.sending ? text.begin.sending : text.begin.send}
        </button>
      </div>
    </form>
  );
}
