/** A diff of one file, line by line. Long ones are drawn as far as they are looked at. */

import { useState } from 'preact/hooks';
import { cut, visible } from '../lib/foreign';
import { text } from '../text';
import type { Hunk } from '../lib/patch';

/** Lines that are drawn before more are asked for. */
const PAGE = 1_000;
/** Characters of a line that are drawn. */
const MAX_COLUMNS = 2_000;

const SIGN = { same: ' ', added: '+', removed: '-', note: '' } as const;

export function Diff({ hunks, label }: { hunks: readonly Hunk[]; label: string }) {
  const [most, setMost] = useState(PAGE);
  const total = hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0);
  let left = most;
  return (
    <div class="diff">
      <div class="diff-scroll" tabIndex={0} role="region" aria-label={label}>
        <table class="diff-lines">
          <caption class="sr-only">{label}</caption>
          {hunks.map((hunk, at) => {
            if (left <= 0) return null;
            const lines = hunk.lines.slice(0, left);
            left -= lines.length;
            return (
              <tbody key={at}>
                <tr class="diff-head">
                  <td colSpan={4}>{cut(visible(hunk.head), MAX_COLUMNS)}</td>
                </tr>
                {lines.map((row, index) => (
                  <tr key={index} class={`diff-${row.kind}`}>
                    <td class="diff-no">{row.before ?? ''}</td>
                    <td class="diff-no">{row.after ?? ''}</td>
                    <td class="diff-sign">
                      {SIGN[row.kind]}
                      {row.kind === 'added' && <span class="sr-only">{text.diff.added}</span>}
                      {row.kind === 'removed' && <span class="sr-only">{text.diff.removed}</span>}
                    </td>
                    <td class="diff-text">
                      <bdi dir="auto">{visible(cut(row.text, MAX_COLUMNS))}</bdi>
                      {row.text.length > MAX_COLUMNS && <span class="note"> {text.diff.longLine}</span>}
                    </td>
                  </tr>
                ))}
              </tbody>
            );
          })}
        </table>
      </div>
      {total > most && (
        <button type="button" class="small" onClick={() => setMost(most + 4 * PAGE)}>
          {text.diff.more(total - most)}
        </button>
      )}
    </div>
  );
}
