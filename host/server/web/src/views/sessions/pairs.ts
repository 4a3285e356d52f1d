/** The calls of two runs, one beside the other. */

import type { ReceiptRow } from '../../state/open';
import { receiptOf } from './receipt';

/** One call of both. */
interface Pair {
  key: string;
  a: ReceiptRow | undefined;
  b: ReceiptRow | undefined;
  differs: boolean;
}

/** What has to be the same: who called what, with which arguments, how it ended, what came out. */
export function sameCall(a: ReceiptRow | undefined, b: ReceiptRow | undefined): boolean {
  if (!a || !b) return false;
  const [left, right] = [receiptOf(a), receiptOf(b)];
  return (
    a.agent === b.agent &&
    a.step === b.step &&
    a.tool === b.tool &&
    a.ok === b.ok &&
    a.ending === b.ending &&
    left?.arguments_digest === right?.arguments_digest &&
    left?.output_digest === right?.output_digest
  );
}

/** In the order in which the model asked, whatever ended first. */
function ordered(rows: readonly ReceiptRow[]): ReceiptRow[] {
  const position = (row: ReceiptRow) => (row.body as { position?: number } | null)?.position ?? 0;
  return [...rows].sort((a, b) => (a.agent < b.agent ? -1 : a.agent > b.agent ? 1 : 0) || a.step - b.step || position(a) - position(b));
}

export function pairs(a: readonly ReceiptRow[], b: readonly ReceiptRow[]): Pair[] {
  const key = (row: ReceiptRow, at: number) => `${row.agent} ${row.step} ${at}`;
  const group = (rows: readonly ReceiptRow[]) => {
    const groups = new Map<string, ReceiptRow[]>();
    for (const row of ordered(rows)) {
      const name = `${row.agent} ${row.step}`;
      groups.set(name, [...(groups.get(name) ?? []), row]);
    }
    return groups;
  };
  const [left, right] = [group(a), group(b)];
  const out: Pair[] = [];
  for (const name of new Set([...left.keys(), ...right.keys()])) {
    const [mine, theirs] = [left.get(name) ?? [], right.get(name) ?? []];
    for (let at = 0; at < Math.max(mine.length, theirs.length); at += 1) {
      const [one, other] = [mine[at], theirs[at]];
      const some = one ?? other;
      if (some) out.push({ key: key(some, at), a: one, b: other, differs: !sameCall(one, other) });
    }
  }
  return out;
}
