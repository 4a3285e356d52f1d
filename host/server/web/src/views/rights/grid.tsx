/** The matrix where there is room for it: heads that stay, and only the rows in sight. */

import { Fragment } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { line } from '../../lib/foreign';
import { text } from '../../text';
import { Mark } from './mark';
import type { Rights } from './data';
import { cellOf, drawnRows, moved, windowOf } from './matrix';

const t = text.rights;

/** The height of a row, as `rights.css` has it. */
const ROW = 30;

export function Grid(props: {
  rights: Rights;
  shown: { rows: number[]; columns: number[] };
  at: { agent: string | null; tool: string | null };
  pick: (agent: string, tool: string | null) => void;
}) {
  const { rights, shown } = props;
  const box = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ top: 0, height: 800 });
  const [focus, setFocus] = useState({ row: 0, column: 0 });
  const wanted = useRef(false);
  /** The focus moves because of a key, which has said where. */
  const moving = useRef(false);
  useLayoutEffect(() => {
    const it = box.current;
    if (!it) return;
    const look = () => setSeen({ top: it.scrollTop, height: it.clientHeight });
    look();
    const sizes = new ResizeObserver(look);
    sizes.observe(it);
    it.addEventListener('scroll', look, { passive: true });
    return () => {
      sizes.disconnect();
      it.removeEventListener('scroll', look);
    };
  }, []);
  const active = {
    row: Math.min(focus.row, shown.rows.length - 1),
    column: Math.min(focus.column, shown.columns.length - 1),
  };
  // Keys may come faster than the matrix is drawn.
  const place = useRef(active);
  place.current = active;
  const { first, last } = windowOf(shown.rows.length, ROW, seen.top, seen.height);
  const drawn = drawnRows(first, last, active.row);
  useEffect(() => {
    if (!wanted.current) return;
    wanted.current = false;
    const cell = box.current?.querySelector<HTMLElement>(
      `[data-cell="${active.row}/${active.column}"]`,
    );
    moving.current = true;
    cell?.focus({ preventScroll: true });
    moving.current = false;
    cell?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  });
  const move = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const to = moved(event.key, place.current, shown.rows.length, shown.columns.length);
    if (to === null) return;
    place.current = to;
    event.preventDefault();
    event.stopPropagation();
    wanted.current = true;
    reveal(box.current, to.row);
    setFocus(to);
  };
  return (
    <div ref={box} class="matrix-box" data-virtual>
      <table
        class="matrix"
        role="grid"
        aria-label={t.matrix}
        aria-describedby="matrix-keys"
        aria-rowcount={shown.rows.length + 1}
        aria-colcount={shown.columns.length + 1}
        onKeyDown={move}
      >
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col" class="corner" aria-colindex={1}>
              {t.agent}
            </th>
            {shown.columns.map((column, at) => {
              const name = rights.tools[column]?.name ?? '';
              return (
                <th key={name} scope="col" aria-colindex={at + 2} class="tool-head">
                  <a href={`/tools/${encodeURIComponent(name)}`} tabIndex={-1} title={name}>
                    <code>{line(name, 40)}</code>
                  </a>
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>
          {drawn.map((at, index) => (
            <Fragment key={rights.agents[shown.rows[at] ?? -1]?.agent}>
              <Gap
                height={(at - (drawn[index - 1] ?? -1) - 1) * ROW}
                columns={shown.columns.length + 1}
              />
              <Row
                rights={rights}
                row={shown.rows[at] ?? -1}
                at={at}
                columns={shown.columns}
                active={active.row === at ? active.column : -1}
                picked={
                  rights.agents[shown.rows[at] ?? -1]?.agent === props.at.agent
                    ? props.at.tool
                    : undefined
                }
                focus={(column) => !moving.current && setFocus({ row: at, column })}
                pick={props.pick}
              />
            </Fragment>
          ))}
          <Gap
            height={(shown.rows.length - 1 - (drawn.at(-1) ?? -1)) * ROW}
            columns={shown.columns.length + 1}
          />
        </tbody>
      </table>
      <p id="matrix-keys" class="sr-only">
        {t.keysHint}
      </p>
    </div>
  );
}

/** Scrolls a row into sight before it is drawn, so that it can take the focus. */
function reveal(box: HTMLElement | null, row: number): void {
  if (!box) return;
  const head = box.querySelector('thead')?.getBoundingClientRect().height ?? 0;
  const top = row * ROW;
  if (top < box.scrollTop) box.scrollTop = top;
  const bottom = top + ROW - (box.clientHeight - head);
  if (bottom > box.scrollTop) box.scrollTop = bottom + 2;
}

/** The room of rows that are out of sight. */
function Gap({ height, columns }: { height: number; columns: number }) {
  if (height <= 0) return null;
  return (
    <tr class="gap" aria-hidden="true">
      <td colSpan={columns} style={{ height: `${height}px` }} />
    </tr>
  );
}

function Row(props: {
  rights: Rights;
  row: number;
  at: number;
  columns: number[];
  active: number;
  /** The tool that the panel explains; `null`: the agent as a whole; `undefined`: another agent. */
  picked: string | null | undefined;
  focus: (column: number) => void;
  pick: (agent: string, tool: string | null) => void;
}) {
  const agent = props.rights.agents[props.row];
  if (!agent) return null;
  const name = line(agent.agent, 60);
  return (
    <tr
      data-row={props.at}
      aria-rowindex={props.at + 2}
      class={props.picked !== undefined ? 'picked' : undefined}
    >
      <th scope="row" aria-colindex={1}>
        <button
          type="button"
          class="row-head"
          tabIndex={-1}
          title={agent.agent}
          onClick={() => props.pick(agent.agent, null)}
        >
          <bdi>{line(agent.slug, 60)}</bdi>
          {agent.scope !== 'home' && (
            <span class="note"> {line(agent.scope.replace(/^library\//, ''), 40)}</span>
          )}
          {agent.status === 'blocked' && (
            <span class="row-blocked">{text.agents.standing.blocked}</span>
          )}
        </button>
      </th>
      {props.columns.map((column, at) => {
        const cell = cellOf(agent.cells[column]);
        const tool = props.rights.tools[column]?.name ?? '';
        const by = cell.by === null ? undefined : t.by[cell.by];
        return (
          <td key={tool} aria-colindex={at + 2} class={`cell is-${cell.may}`}>
            <button
              type="button"
              data-cell={`${props.at}/${at}`}
              tabIndex={props.active === at ? 0 : -1}
              aria-label={t.cell(name, tool, t.may[cell.may] ?? cell.may, by)}
              aria-pressed={props.picked === tool}
              onFocus={() => props.focus(at)}
              onClick={() => props.pick(agent.agent, tool)}
            >
              <Mark may={cell.may} />
              {cell.by !== null && (
                <span class="cell-by" aria-hidden="true">
                  {t.byLetter[cell.by]}
                </span>
              )}
            </button>
          </td>
        );
      })}
    </tr>
  );
}
