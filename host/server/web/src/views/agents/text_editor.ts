/**
 * The editor of an agent's text, a chunk of its own. It lives in a shadow root: its styles are then
 * adopted style sheets, which the page's policy allows, and not `style` elements, which it does not.
 */

import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { yamlFrontmatter } from '@codemirror/lang-yaml';
import {
  defineLanguageFacet,
  HighlightStyle,
  Language,
  syntaxHighlighting,
} from '@codemirror/language';
import { lintGutter, setDiagnostics } from '@codemirror/lint';
import type { Diagnostic as Mark } from '@codemirror/lint';
import { EditorState, Transaction } from '@codemirror/state';
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { parser } from '@lezer/markdown';

import type { Diagnostic } from './data';

/** The editor, as the view uses it. */
export interface TextEditor {
  /** Puts another text there; what is the same in both is left alone, and so is the cursor. */
  setText(text: string): void;
  /** Marks findings on their lines. */
  mark(found: readonly Diagnostic[]): void;
  /** Moves the cursor to a place and the focus into the text. */
  show(line: number, column: number): void;
  destroy(): void;
}

/** What the editor is made with. */
export interface Options {
  text: string;
  label: string;
  readOnly: boolean;
  onChange: (text: string) => void;
  /** `Esc`, for who uses no mouse. */
  onLeave: () => void;
}

/** The prompt below the fields. The full language package would bring HTML and scripts along. */
const prose = new Language(defineLanguageFacet(), parser, [], 'markdown');

const theme = EditorView.theme({
  '&': { height: '100%', fontSize: 'var(--code-size, 13px)', color: 'inherit' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-2px' },
  '.cm-scroller': { fontFamily: 'var(--mono, ui-monospace, monospace)', lineHeight: '1.55' },
  '.cm-content': { padding: '10px 0', caretColor: 'currentColor' },
  '.cm-gutters': {
    background: 'transparent',
    color: 'var(--ink-2)',
    border: 'none',
  },
  '.cm-activeLine': { background: 'var(--row, transparent)' },
  '.cm-activeLineGutter': { background: 'transparent' },
  '.cm-cursor': { borderLeftColor: 'currentColor' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground': {
    background: 'var(--selected, var(--accent-soft))',
  },
  '.cm-selectionBackground': { background: 'var(--selected, var(--accent-soft))' },
  '.cm-tooltip': {
    background: 'var(--raised)',
    color: 'inherit',
    border: '1px solid var(--edge)',
    borderRadius: '6px',
  },
  '.cm-specialChar': { color: 'var(--red)' },
});

const colours = HighlightStyle.define([
  { tag: tags.definition(tags.propertyName), color: 'var(--accent)' },
  { tag: tags.propertyName, color: 'var(--accent)' },
  { tag: [tags.comment, tags.meta, tags.processingInstruction], color: 'var(--ink-2)' },
  { tag: tags.heading, fontWeight: '600' },
  { tag: tags.strong, fontWeight: '600' },
  { tag: tags.emphasis, fontStyle: 'italic' },
  { tag: [tags.monospace, tags.url, tags.link], color: 'var(--accent)' },
]);

/** Makes an editor within an element. */
export function makeEditor(host: HTMLElement, options: Options): TextEditor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' });
  const parent = document.createElement('div');
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(':host { display: block } :host > div { height: 100% }');
  root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
  root.replaceChildren(parent);
  // The page's own keys are not for who types here, and the host of the text looks like no field.
  const keep = (event: KeyboardEvent): void => event.stopPropagation();
  host.addEventListener('keydown', keep);
  const view = new EditorView({ parent, root, state: stateOf(options) });
  return {
    setText: (text) => replace(view, text),
    mark: (found) => view.dispatch(setDiagnostics(view.state, marksOf(view.state, found))),
    show: (line, column) => {
      const at = placeOf(view.state, line, column);
      view.dispatch({ selection: { anchor: at }, scrollIntoView: true });
      view.focus();
    },
    destroy: () => {
      host.removeEventListener('keydown', keep);
      view.destroy();
    },
  };
}

function stateOf(options: Options): EditorState {
  const leave = { key: 'Escape', run: () => (options.onLeave(), true) };
  return EditorState.create({
    doc: options.text,
    extensions: [
      EditorState.lineSeparator.of(separatorOf(options.text)),
      lineNumbers(),
      lintGutter(),
      history(),
      drawSelection(),
      highlightActiveLine(),
      highlightSpecialChars(),
      EditorView.lineWrapping,
      EditorState.readOnly.of(options.readOnly),
      EditorView.contentAttributes.of({
        'aria-label': options.label,
        ...(options.readOnly ? { 'aria-readonly': 'true' } : {}),
      }),
      yamlFrontmatter({ content: prose }),
      syntaxHighlighting(colours),
      theme,
      keymap.of([...defaultKeymap, ...historyKeymap, leave]),
      EditorView.updateListener.of((update) => {
        const own = update.transactions.some((one) => one.annotation(Transaction.remote) === true);
        if (update.docChanged && !own) options.onChange(textOf(update.state));
      }),
    ],
  });
}

/** The text with the line ends that it came with. */
function textOf(state: EditorState): string {
  return state.sliceDoc();
}

/** Line ends that every line of a text has: `\r\n`, or else `\n`, so that no byte is changed. */
export function separatorOf(text: string): '\r\n' | '\n' {
  return text.includes('\r\n') && !/(^|[^\r])\n/.test(text) ? '\r\n' : '\n';
}

function replace(view: EditorView, wanted: string): void {
  if (textOf(view.state) === wanted) return;
  // Within the editor each line end counts as one character.
  const flat = (text: string): string =>
    view.state.lineBreak === '\r\n' ? text.replaceAll('\r\n', '\n') : text;
  const [now, next] = [flat(textOf(view.state)), flat(wanted)];
  let start = 0;
  const most = Math.min(now.length, next.length);
  while (start < most && now[start] === next[start]) start += 1;
  let end = 0;
  while (end < most - start && now[now.length - 1 - end] === next[next.length - 1 - end]) end += 1;
  view.dispatch({
    changes: { from: start, to: now.length - end, insert: next.slice(start, next.length - end) },
    annotations: Transaction.remote.of(true),
  });
}

function marksOf(state: EditorState, found: readonly Diagnostic[]): Mark[] {
  return found
    .filter((one) => one.line > 0)
    .map((one) => {
      const from = placeOf(state, one.line, one.column);
      const line = state.doc.lineAt(from);
      const word = /^[^\s,[\]{}]+/.exec(line.text.slice(from - line.from))?.[0] ?? '';
      const to = word === '' ? line.to : from + word.length;
      return {
        from: word === '' ? line.from : from,
        to,
        severity:
          one.severity === 'error' ? 'error' : one.severity === 'warning' ? 'warning' : 'info',
        message: one.hint ? `${one.message}\n${one.hint}` : one.message,
      } satisfies Mark;
    });
}

/** The offset of a line and a column in characters, both from 1. */
function placeOf(state: EditorState, line: number, column: number): number {
  const row = state.doc.line(Math.min(Math.max(line, 1), state.doc.lines));
  const characters = [...row.text].slice(0, Math.max(column - 1, 0)).join('').length;
  return Math.min(row.from + characters, row.to);
}
