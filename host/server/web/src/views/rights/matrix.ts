/** The matrix of rights: what its cells say, and which rows and columns are shown. */

import type { Of } from '../../api/client';

/** Who decided about a right. */
export type Source = 'definition' | 'manifest' | 'grants' | 'parent' | 'hook' | 'host';

/** The answer about one tool. */
export type May = 'allow' | 'no-host' | 'ask' | 'deny' | 'absent';

/** A cell: an answer, and who gave it. */
export interface Cell {
  may: May;
  by: Source | null;
}

/** A row as the server gives it. */
export type AgentRights = Of<'RowBody'>;

/** A column as the server gives it. */
export type RightsTool = Of<'ColumnBody'>;

const SOURCES: readonly string[] = ['definition', 'manifest', 'grants', 'parent', 'hook', 'host'];

/** Reads `allow`, `no-host`, `ask:grants`, `deny:definition` or `absent`; anything else is no right. */
export function cellOf(text: string | undefined): Cell {
  const [may = '', by] = (text ?? '').split(':');
  const source = by !== undefined && SOURCES.includes(by) ? (by as Source) : null;
  switch (may) {
    case 'allow':
    case 'no-host':
    case 'ask':
    case 'absent':
      return { may, by: source };
    default:
      return { may: 'deny', by: source };
  }
}

/** What a person narrowed the matrix to. */
export interface Filter {
  /** A part of the agent's name. */
  agent: string;
  /** A part of the tool's name. */
  tool: string;
  /** Whether columns that no row shown may use are left out. */
  usedOnly: boolean;
}

/** The rows and the columns that a filter leaves, as indexes. */
export function narrowed(
  agents: readonly AgentRights[],
  tools: readonly RightsTool[],
  filter: Filter,
): { rows: number[]; columns: number[] } {
  const has = (name: string, part: string): boolean =>
    name.toLowerCase().includes(part.trim().toLowerCase());
  const rows = indexes(agents, (agent) => has(agent.agent, filter.agent));
  const columns = indexes(tools, (tool, at) => {
    if (!has(tool.name, filter.tool)) return false;
    if (!filter.usedOnly) return true;
    return rows.some((row) => {
      const { may } = cellOf(agents[row]?.cells[at]);
      return may === 'allow' || may === 'no-host' || may === 'ask';
    });
  });
  return { rows, columns };
}

function indexes<T>(all: readonly T[], fits: (one: T, at: number) => boolean): number[] {
  return all.flatMap((one, at) => (fits(one, at) ? [at] : []));
}

/** The rows of a list of equal height that can be seen, and some on both sides of them. */
export function windowOf(
  count: number,
  height: number,
  scrolled: number,
  seen: number,
  beside = 6,
): { first: number; last: number } {
  const first = Math.max(0, Math.floor(scrolled / height) - beside);
  const last = Math.min(count, Math.ceil((scrolled + seen) / height) + beside);
  return {
    first: Math.min(first, count),
    last: Math.max(last, Math.min(first, count)),
  };
}

/** The rows of a window, and the one that has the focus wherever it is, so that it keeps it. */
export function drawnRows(first: number, last: number, focused: number): number[] {
  const rows = Array.from({ length: last - first }, (_, at) => first + at);
  if (focused < 0 || (focused >= first && focused < last)) return rows;
  return focused < first ? [focused, ...rows] : [...rows, focused];
}

/** Where a key moves the cell that has the focus; `null` = it is no key of the matrix. */
export function moved(
  key: string,
  at: { row: number; column: number },
  rows: number,
  columns: number,
): { row: number; column: number } | null {
  const clamp = (n: number, most: number): number =>
    Math.min(Math.max(n, 0), Math.max(most - 1, 0));
  const to = (row: number, column: number): { row: number; column: number } => ({
    row: clamp(row, rows),
    column: clamp(column, columns),
  });
  switch (key) {
    case 'ArrowDown':
    case 'j':
      return to(at.row + 1, at.column);
    case 'ArrowUp':
    case 'k':
      return to(at.row - 1, at.column);
    case 'ArrowRight':
    case 'l':
      return to(at.row, at.column + 1);
    case 'ArrowLeft':
    case 'h':
      return to(at.row, at.column - 1);
    case 'PageDown':
      return to(at.row + 15, at.column);
    case 'PageUp':
      return to(at.row - 15, at.column);
    case 'Home':
      return to(at.row, 0);
    case 'End':
      return to(at.row, columns - 1);
    default:
      return null;
  }
}
