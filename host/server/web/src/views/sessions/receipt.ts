/** A receipt, and what several of them touched. */

import type { ReceiptRow } from '../../state/open';

/** What the sandbox notes of a call. */
export interface Receipt {
  component: string;
  ending: { kind: string; detail?: string };
  fuel: number;
  times: { queued: number; opening: number; guest: number; waiting: number; total: number };
  peak_memory: number;
  bytes: { read: number; written: number; sent: number; received: number; output: number };
  host_calls: number;
  denials: { code: string; what: string; facts: string; target?: string }[];
  denials_dropped: number;
  paths_read: string[];
  paths_written: string[];
  paths_dropped: number;
  hosts: string[];
  secrets_used: string[];
  logs: { level: string; message: string }[];
  logs_dropped: number;
  stdout: string;
  stderr: string;
  arguments_digest: string;
  output_digest: string;
}

/** The receipt in a row. */
export function receiptOf(row: ReceiptRow | undefined): Receipt | undefined {
  const body = row?.body as { receipt?: Receipt } | null | undefined;
  return body?.receipt;
}

/** The call that made this one. */
export function parentOf(row: ReceiptRow): string | undefined {
  return (row.body as { parent?: string } | null)?.parent;
}

/** Everything that calls touched. */
export function effects(rows: readonly ReceiptRow[]): { read: string[]; written: string[]; hosts: string[]; secrets: string[]; refused: number } {
  const [read, written, hosts, secrets] = [new Set<string>(), new Set<string>(), new Set<string>(), new Set<string>()];
  let refused = 0;
  for (const row of rows) {
    const receipt = receiptOf(row);
    if (!receipt) continue;
    if (receipt.denials.length > 0 || row.ending === 'denied' || row.ending === 'refused') refused += 1;
    for (const path of receipt.paths_read) read.add(path);
    for (const path of receipt.paths_written) written.add(path);
    for (const host of receipt.hosts) hosts.add(host);
    for (const secret of receipt.secrets_used) secrets.add(secret);
  }
  return { read: [...read], written: [...written], hosts: [...hosts], secrets: [...secrets], refused };
}
