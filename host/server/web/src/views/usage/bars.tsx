/** Bars of one measure: upright for days, lying for names. Each says its number when it is hovered,
 * focused or read aloud. */

import { text } from '../../text';
import { Name } from '../../ui/foreign';

export interface BarRow {
  name: string;
  value: number;
}

export function Bars(props: {
  label: string;
  rows: readonly BarRow[];
  words: (value: number) => string;
  upright: boolean;
}) {
  const { rows, words } = props;
  const most = Math.max(1, ...rows.map((row) => row.value));
  return props.upright ? (
    <Upright {...props} most={most} />
  ) : (
    <ul class="plain bars-lying" aria-label={props.label}>
      {rows.map((row) => (
        <li key={row.name}>
          <span class="bars-name">
            <Name of={row.name} />
          </span>
          <svg class="bars-line" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
            <rect x="0" y="1" width={(100 * row.value) / most} height="8" />
          </svg>
          <span class="num">{words(row.value)}</span>
        </li>
      ))}
    </ul>
  );
}

function Upright({
  label,
  rows,
  words,
  most,
}: {
  label: string;
  rows: readonly BarRow[];
  words: (value: number) => string;
  most: number;
}) {
  const [first, last] = [rows[0]?.name ?? '', rows.at(-1)?.name ?? ''];
  return (
    <figure class="bars-upright">
      <span class="bars-most num">{words(most)}</span>
      <svg
        viewBox={`0 0 ${rows.length * 10} 100`}
        preserveAspectRatio="none"
        role="img"
        aria-label={label}
      >
        {[25, 50, 75].map((at) => (
          <line key={at} class="bars-rule" x1="0" x2={rows.length * 10} y1={at} y2={at} />
        ))}
        {rows.map((row, at) => {
          const height = row.value === 0 ? 0 : Math.max(1, (100 * row.value) / most);
          return (
            <g key={row.name}>
              <rect class="bars-day" x={at * 10 + 1} width="8" y={100 - height} height={height} />
              <rect class="bars-hover" x={at * 10} width="10" y="0" height="100">
                <title>{text.usage.bar(row.name, words(row.value))}</title>
              </rect>
            </g>
          );
        })}
      </svg>
      <figcaption class="note num">
        <span>{first}</span>
        <span>{last}</span>
      </figcaption>
    </figure>
  );
}
