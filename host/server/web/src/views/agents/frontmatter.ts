/**
 * Finds the frontmatter of an agent's file, by the rules of the server: blank lines and a byte order
 * mark may come first, and a closing fence may have more than three dashes.
 */

/** Where the parts of a file lie, as offsets into its text. */
export interface Parts {
  /** The first character of the YAML. */
  yamlStart: number;
  /** Behind the last character of the YAML: the closing fence. */
  yamlEnd: number;
  /** The first character of the prompt. */
  bodyStart: number;
}

/** Why a text has no frontmatter that a form could edit. */
export type NoParts = 'none' | 'unclosed' | 'indented';

/** Cuts a text into its parts. */
export function split(text: string): Parts | NoParts {
  let at = text.startsWith('\ufeff') ? 1 : 0;
  let line = lineAt(text, at);
  while (line !== null && line.text.trim() === '') {
    at = line.next;
    line = lineAt(text, at);
  }
  if (line === null || !/^\s*---\s*$/.test(line.text)) return 'none';
  if (!line.text.startsWith('---')) return 'indented';
  const yamlStart = line.next;
  for (at = yamlStart, line = lineAt(text, at); line !== null; line = lineAt(text, at)) {
    if (/^-{3,}\s*$/.test(line.text)) return { yamlStart, yamlEnd: at, bodyStart: line.next };
    at = line.next;
  }
  return 'unclosed';
}

/** The end of line that a text uses. */
export function lineEnd(text: string): string {
  return /\r\n/.test(text) ? '\r\n' : '\n';
}

function lineAt(text: string, at: number): { text: string; next: number } | null {
  if (at >= text.length) return null;
  const end = text.indexOf('\n', at);
  return end < 0
    ? { text: text.slice(at), next: text.length }
    : { text: text.slice(at, end), next: end + 1 };
}
