/** The one place where text becomes markup. What a model writes is read as markdown in which HTML
 * is only text; what comes of it is rebuilt by DOMPurify from a short list of elements. Nothing in
 * it loads anything: an image is a link with its words. */

import DOMPurify from 'dompurify';
import { Marked } from 'marked';
import { text } from '../text';
import { visible } from './foreign';

/** Longest text that is read as markdown; what is longer is shown as it is. */
export const MAX_MARKDOWN = 200_000;

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

function escape(value: string): string {
  return value.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
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

/** The text as nodes. */
export function markdown(source: string): DocumentFragment {
  const html = marked.parse(visible(source), { async: false });
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ['href', 'target', 'rel', 'class', 'start', 'tabindex'],
    ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
}
