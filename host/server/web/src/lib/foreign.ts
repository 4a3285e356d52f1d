/** Text of a model, a tool, a file or an agent's author: made harmless to look at. What would
 * hide, turn round or pile up is shown as a mark; what is endless is cut. Markup is nobody's
 * business here: text goes into text nodes. */

/** Most characters of one piece of foreign text that is laid out at once. */
export const MAX_SHOWN = 20_000;

/** Most characters of a line of a list. */
export const MAX_LINE = 300;

/** Marks on one letter that are drawn. */
const MAX_MARKS = 4;

// Controls but tab and line feed; soft hyphen; Arabic letter mark; zero-width and bidi controls;
// invisible operators; Hangul and Khmer fillers; the empty braille cell; variation selectors of the
// supplement; controls of shorthand, music and hieroglyphs; tags; lone surrogates; the replacement of
// what was no text.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb]|[\u{13430}-\u{1345f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]|\p{Cs}/gu;

const PILED = new RegExp(`(\\p{M}{${MAX_MARKS}})(\\p{M}+)`, 'gu');

/** The mark that stands for a character that is not seen. */
export function mark(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
}

/** The text with a mark for each character that would hide or mislead. A carriage return before
 * a line feed is a line's end. */
export function visible(text: string): string {
  return text
    .replaceAll('\r\n', '\n')
    .replace(HIDDEN, mark)
    .replace(PILED, (_all, kept: string, more: string) => `${kept}⟨+${[...more].length} marks⟩`);
}

/** Whether something in it would hide or mislead. */
export function hides(text: string): boolean {
  return text.search(HIDDEN) >= 0;
}

/** The beginning of a text, never in the middle of a character. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = most > 0 && /[\uD800-\uDBFF]/.test(text.charAt(most - 1)) ? most - 1 : most;
  return text.slice(0, end);
}

/** Blanks other than the usual one. */
const BLANKS = /[\u00a0\u1680\u2000-\u200a\u205f\u3000]/g;

/** A path or a name that is not another one because of its blanks: those at its ends, those that follow
 * one another and those that only look like one are marks. */
export function exact(text: string, most = MAX_LINE): string {
  const begin = cut(text, most);
  const shown = visible(begin)
    .replace(BLANKS, mark)
    .replace(/^ +| +$| {2,}/g, (blanks) => '␣'.repeat(blanks.length))
    .replaceAll('\n', '↵')
    .replaceAll('\t', '⇥');
  return begin.length < text.length ? `${shown}…` : shown;
}

/** One line of it for a list: breaks are shown, what is too long ends in `…`. */
export function line(text: string, most = MAX_LINE): string {
  // Cut before it is looked through: it may be endless.
  const begin = cut(text, most);
  const shown = visible(begin.trim()).replace(/\s*\n\s*/g, ' ↵ ').replaceAll('\t', ' ');
  return begin.length < text.length ? `${shown}…` : shown;
}
