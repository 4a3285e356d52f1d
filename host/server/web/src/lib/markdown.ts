/** The one place where text becomes markup. What a model writes is read as markdown in which HTML
 * is only text; what comes of it is rebuilt by DOMPurify from a short list of elements. Nothing in
 * it loads anything: an image is a link with its words. */

import DOMPurify from 'dompurify';
import { Lexer, Marked, type Token } from 'marked';
import { text } from '../text';
import { visible } from './foreign';

/** Longest text that is read as markdown; what is longer is shown as it is. */
export const MAX_MARKDOWN = 60_000;

/** Longest run of words that is read at once. Reading takes time by the square of it. */
const MAX_RUN = 3_000;
/** The squares of all runs of a text together; words behind that are shown as they are. */
const MAX_WORK = 60_000_000;
/** Names for addresses that a text may have; each run is held against all of them. */
const MAX_NAMES = 100;
/** Quotes and lists in one another, at the beginning of a line. */
const TOO_DEEP = /^(?:[ \t]*(?:>|[-*+]|\d{1,9}[.)])){24}/m;

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escape(value: string): string {
  return value.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}

/** The same for words in which characters may be written as entities, which come to nothing but
 * characters. */
function escapeWords(value: string): string {
  return value.replace(/[<>"']|&(?!(?:#\d{1,7}|#[Xx][\da-fA-F]{1,6}|\w+);)/g, (character) => ESCAPES[character] ?? '');
}

/** The address, if a person may be sent there. */
function address(href: string): URL | undefined {
  try {
    const url = new URL(href);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url : undefined;
  } catch {
    return undefined;
  }
}

/** A link says where it leads, wherever its words do not. */
function link(href: string, words: string, plain: string): string {
  const url = address(href);
  if (!url) return `${words} <code>${escape(href.slice(0, 200))}</code>`;
  const host = url.protocol === 'mailto:' ? url.pathname : url.host;
  const says = plain === href || plain === host ? '' : ` <span class="link-host">(${escape(host)})</span>`;
  return `<a href="${escape(url.href)}" target="_blank" rel="noopener noreferrer nofollow">${words}</a>${says}`;
}

const marked = new Marked({
  gfm: true,
  breaks: false,
  renderer: {
    html({ text: raw }) {
      return escape(raw);
    },
    // Marked has words that it takes for escaped already, behind a `<kbd>` for example. They are not.
    text(token) {
      return 'tokens' in token && token.tokens ? this.parser.parseInline(token.tokens) : escapeWords(token.text);
    },
    link({ href, tokens, text: plain }) {
      return link(href, this.parser.parseInline(tokens), plain);
    },
    image({ href, text: plain }) {
      const words = escape(plain || text.foreign.image);
      return `<span class="image-words">${link(href, words, plain)}</span>`;
    },
    checkbox({ checked }) {
      return checked ? '☑ ' : '☐ ';
    },
    code({ text: code, lang }) {
      const name = (lang ?? '').split(/\s/)[0] ?? '';
      const label = name ? `<span class="code-lang">${escape(name.slice(0, 40))}</span>` : '';
      return `<div class="code">${label}<pre tabindex="0"><code>${escape(code)}\n</code></pre></div>`;
    },
    table(token) {
      const row = (tag: string, cells: typeof token.header) => {
        const cell = ({ tokens, align }: (typeof cells)[number]) =>
          `<${tag}${align ? ` class="align-${align}"` : ''}>${this.parser.parseInline(tokens)}</${tag}>`;
        return `<tr>${cells.map(cell).join('')}</tr>`;
      };
      const rows = token.rows.map((cells) => row('td', cells)).join('');
      return `<div class="table-box" tabindex="0"><table><thead>${row('th', token.header)}</thead><tbody>${rows}</tbody></table></div>`;
    },
  },
});

const TAGS = [
  'a', 'blockquote', 'br', 'code', 'del', 'div', 'em', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'hr', 'li', 'ol', 'p', 'pre',
  'span', 'strong', 'table', 'tbody', 'td', 'th', 'thead', 'tr', 'ul',
];

/** The classes that the renderer above gives; no others are anybody's. */
const CLASSES = /^(?:code|code-lang|table-box|link-host|image-words|align-(?:left|right|center))$/;

DOMPurify.addHook('uponSanitizeAttribute', (_element, attribute) => {
  if (attribute.attrName === 'class' && !CLASSES.test(attribute.attrValue)) attribute.keepAttr = false;
});
DOMPurify.addHook('afterSanitizeAttributes', (element) => {
  if (element.tagName === 'A' && element.getAttribute('target') !== '_blank') element.removeAttribute('href');
});

/** Words of one run, in pieces that can be read in a bounded time. */
function pieces(run: string): string[] {
  if (run.length <= MAX_RUN) return [run];
  const all: string[] = [];
  let rest = run;
  while (rest.length > MAX_RUN) {
    const line = rest.lastIndexOf('\n', MAX_RUN);
    const blank = line > 0 ? line : rest.lastIndexOf(' ', MAX_RUN);
    const end = blank > 0 ? blank + 1 : MAX_RUN;
    all.push(rest.slice(0, end));
    rest = rest.slice(end);
  }
  all.push(rest);
  return all;
}

/** Reads the blocks of a text, and then their words, with a bound for the work. */
function read(source: string): Token[] {
  const lexer = new Lexer(marked.defaults);
  const tokens = lexer.blockTokens(source, lexer.tokens);
  const names = Object.keys(lexer.tokens.links);
  for (const name of names.slice(MAX_NAMES)) delete lexer.tokens.links[name];
  let work = 0;
  for (const { src, tokens: words } of lexer.inlineQueue) {
    for (const piece of pieces(src)) {
      work += piece.length ** 2;
      if (work > MAX_WORK) words.push({ type: 'text', raw: piece, text: piece });
      else lexer.inlineTokens(piece, words);
    }
  }
  lexer.inlineQueue = [];
  return tokens;
}

/** A part of a text that stands by itself: a paragraph, a list, a table. */
export interface Part {
  /** Its length in the text. */
  length: number;
  nodes: () => DocumentFragment;
}

/** A text as it is read: with a mark for what would hide. */
export function readable(source: string): string {
  return visible(source).replaceAll('\r', '\n');
}

/** The parts of a text that is `readable`; `undefined`: it is shown as it is. */
export function parts(source: string): Part[] | undefined {
  if (source.length > MAX_MARKDOWN || TOO_DEEP.test(source)) return undefined;
  try {
    return read(source).map((token) => {
      const html = marked.parser([token]);
      return { length: token.raw.length, nodes: () => clean(html) };
    });
  } catch {
    // It nests deeper than can be read.
    return undefined;
  }
}

function clean(html: string): DocumentFragment {
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ['href', 'target', 'rel', 'class', 'start', 'tabindex'],
    ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
    // They are no addresses, and would be dropped as wrong ones.
    ADD_URI_SAFE_ATTR: ['target', 'rel', 'start', 'tabindex'],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
}
