/** What the server finds in a text, and what it would be given. */

import { text } from '../../text';
import { Waiting } from '../../ui/basics';
import { Name } from '../../ui/foreign';
import { ProblemPanel } from '../../ui/problem';
import type { AgentRow, Diagnostic } from './data';
import type { CheckState } from './use_checked';

export function Findings(props: {
  checked: CheckState;
  /** The agent that the text is, as far as it is one. */
  given: AgentRow['definition'];
  allowed: boolean;
  /** Before anything was written. */
  hint?: string | undefined;
  /** The text is on the page. */
  isShown: boolean;
  show: (line: number, column: number) => void;
}) {
  const { checked, given } = props;
  const found = checked.result?.diagnostics ?? [];
  return (
    <section class="pane pane-findings" aria-label={text.editor.diagnostics}>
      {props.isShown && !props.allowed && <p class="note">{text.editor.notChecked}</p>}
      {checked.problem && <ProblemPanel problem={checked.problem} />}
      {props.hint && !checked.result && <p class="note">{props.hint}</p>}
      {props.isShown && props.allowed && !checked.result && checked.busy && (
        <Waiting>{text.editor.checking}</Waiting>
      )}
      {checked.result && found.length === 0 && <p class="note">{text.editor.noDiagnostics}</p>}
      <p class="sr-only" role="status">
        {found.length > 0 && summary(found)}
      </p>
      {found.length > 0 && (
        <ul class="plain findings" aria-label={text.editor.diagnostics}>
          {found.map((one, at) => (
            <Finding key={at} one={one} show={props.show} />
          ))}
        </ul>
      )}
      {given && <Given definition={given} saved={!props.isShown} />}
    </section>
  );
}

function summary(found: readonly Diagnostic[]): string {
  const count = (severity: string) => found.filter((one) => one.severity === severity).length;
  return text.editor.findings(count('error'), count('warning'));
}

function Finding({ one, show }: { one: Diagnostic; show: (line: number, column: number) => void }) {
  const words = (
    <>
      <span class="finding-word">{text.editor.severity[one.severity] ?? one.severity}</span>{' '}
      <Name of={one.message} most={1_000} />
    </>
  );
  return (
    <li class={`finding is-${one.severity}`}>
      {one.line > 0 ? (
        <button type="button" class="link num" onClick={() => show(one.line, one.column)}>
          {text.editor.at(one.line)}
        </button>
      ) : (
        <span class="note">{text.editor.at(0)}</span>
      )}
      <span class="finding-what">
        {words}
        {one.hint && (
          <span class="note">
            {' '}
            <Name of={one.hint} most={1_000} />
          </span>
        )}
      </span>
    </li>
  );
}

function Given({
  definition,
  saved,
}: {
  definition: NonNullable<AgentRow['definition']>;
  saved: boolean;
}) {
  const tools = Object.entries(definition.tools);
  return (
    <div class="given">
      <h3>{saved ? text.editor.has : text.editor.gets}</h3>
      {tools.length === 0 && <span class="note">{text.editor.getsNothing}</span>}
      <ul class="plain chips">
        {tools.map(([tool, may]) => (
          <li key={tool} class={`chip is-${may}`}>
            <code>{tool}</code>
            {may === 'ask' && <span class="note"> {text.editor.asks}</span>}
          </li>
        ))}
      </ul>
      {definition.reasons.length > 0 && (
        <ul class="plain given-reasons">
          {definition.reasons.map((reason) => (
            <li key={reason}>
              <Name of={reason} most={400} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
