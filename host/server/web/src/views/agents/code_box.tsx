/** The text of an agent in an editor that is loaded when it is first needed. */

import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { text } from '../../text';
import { Waiting } from '../../ui/basics';
import { Block } from '../../ui/foreign';
import type { Diagnostic } from './data';
import type { TextEditor } from './text_editor';

/** What a view may do with the editor. */
export interface CodeHandle {
  show: (line: number, column: number) => void;
}

export function CodeBox(props: {
  value: string;
  /** Changes with each text that does not come from the editor itself. */
  revision: number;
  onChange: (value: string) => void;
  readOnly: boolean;
  diagnostics: readonly Diagnostic[];
  handle: RefObject<CodeHandle | null>;
  /** In place of the text, where that is not shown. */
  prompt: string | undefined;
}) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<TextEditor | undefined>(undefined);
  const now = useRef(props);
  now.current = props;
  const [state, setState] = useState<'loading' | 'there' | 'failed'>('loading');
  const hasText = props.prompt === undefined;
  useEffect(() => {
    if (!hasText) return;
    let left = false;
    import('./text_editor').then(
      ({ makeEditor }) => {
        if (left || !host.current) return;
        editor.current = makeEditor(host.current, {
          text: now.current.value,
          label: text.editor.textLabel,
          readOnly: now.current.readOnly,
          onChange: (value) => now.current.onChange(value),
          onLeave: () => document.querySelector<HTMLElement>('.workbench-ways button')?.focus(),
        });
        editor.current.mark(now.current.diagnostics);
        setState('there');
      },
      () => !left && setState('failed'),
    );
    return () => {
      left = true;
      editor.current?.destroy();
      editor.current = undefined;
    };
  }, [hasText, props.readOnly]);
  useEffect(() => editor.current?.setText(now.current.value), [props.revision]);
  useEffect(() => editor.current?.mark(props.diagnostics), [props.diagnostics]);
  props.handle.current = { show: (line, column) => editor.current?.show(line, column) };
  if (!hasText) {
    return (
      <section class="pane pane-text" aria-label={text.editor.prompt}>
        <h2>{text.editor.prompt}</h2>
        <p class="note">{text.editor.noText}</p>
        <Block of={props.prompt ?? ''} label={text.editor.prompt} />
      </section>
    );
  }
  return (
    <section class="pane pane-text" aria-label={text.editor.text}>
      <h2>
        {text.editor.text} <span class="note">{text.editor.leaveHint}</span>
      </h2>
      {state === 'loading' && <Waiting>{text.editor.loadingEditor}</Waiting>}
      {state === 'failed' ? (
        <>
          <p class="note">{text.editor.editorFailed}</p>
          <textarea
            class="mono code-plain"
            aria-label={text.editor.textLabel}
            readOnly={props.readOnly}
            value={props.value}
            spellcheck={false}
            onInput={(event) => props.onChange(event.currentTarget.value)}
          />
        </>
      ) : (
        <div ref={host} class="code-host" />
      )}
    </section>
  );
}
