/** Foreign text on the page: isolated from what stands around it, and bounded. */

import { useState } from 'preact/hooks';
import { cut, exact, line, MAX_LINE, MAX_SHOWN, visible } from '../lib/foreign';
import { bytes } from '../lib/format';
import { text } from '../text';

/** A name or a short text in a line. `code`: a path, a tool, an id. */
export function Name({ of, code = false, most = MAX_LINE }: { of: string; code?: boolean; most?: number }) {
  const shown = code ? exact(of, most) : line(of, most);
  const title = of.length > most || shown !== of ? visible(cut(of, 2_000)) : undefined;
  const Tag = code ? 'code' : 'bdi';
  return (
    <Tag class="foreign" dir="auto" title={title}>
      {shown}
    </Tag>
  );
}

/** A longer text with its line breaks: code, output, arguments. */
export function Block({ of, label, most = MAX_SHOWN }: { of: string; label?: string; most?: number }) {
  const [whole, setWhole] = useState(false);
  const bound = whole ? most * 20 : most;
  const shown = visible(cut(of, bound));
  const more = of.length > bound;
  return (
    <div class="block">
      {/* It scrolls, so it has to be reached without a mouse. */}
      <pre class="foreign" dir="auto" tabIndex={0} role="group" aria-label={label ?? text.foreign.text}>
        {shown}
      </pre>
      {more && (
        <p class="note">
          {text.foreign.cut(bytes(bound), bytes(of.length))}{' '}
          {!whole && (
            <button type="button" class="link" onClick={() => setWhole(true)}>
              {text.foreign.more}
            </button>
          )}
        </p>
      )}
    </div>
  );
}
