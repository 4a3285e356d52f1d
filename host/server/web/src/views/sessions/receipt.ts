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

const CSV_FIELDS = [
  'message', 'id', 'agent', 'step', 'call_id', 'parent', 'tool', 'ok', 'ending', 'error', 'fuel', 'micros', 'peak_memory',
  'bytes_read', 'bytes_written', 'bytes_sent', 'bytes_received', 'bytes_output', 'denials', 'paths_read', 'paths_written', 'hosts',
  'secrets', 'created',
] as const;

/** A cell: a spreadsheet must not take foreign text for a formula. */
function cell(value: unknown): string {
  let words = value === undefined || value === null ? '' : String(value);
  if (typeof value === 'string' && /^[=+\-@\t\r]/.test(words)) words = `'${words}`;
  return /[",\n\r]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
}

/** Receipts as a table of comma-separated values. */
export function csv(rows: readonly ReceiptRow[]): string {
  const lines = rows.map((row) => {
    const receipt = receiptOf(row);
    const values: Record<(typeof CSV_FIELDS)[number], unknown> = {
      message: row.message,
      id: row.id,
      agent: row.agent,
      step: row.step,
      call_id: row.call_id,
      parent: parentOf(row),
      tool: row.tool,
      ok: row.ok,
      ending: row.ending,
      error: (row.body as { error?: string } | null)?.error,
      fuel: row.fuel,
      micros: row.micros,
      peak_memory: receipt?.peak_memory,
      bytes_read: receipt?.bytes.read,
      bytes_written: receipt?.bytes.written,
      bytes_sent: receipt?.bytes.sent,
      bytes_received: receipt?.bytes.received,
      bytes_output: receipt?.bytes.output,
      denials: receipt?.denials.map((one) => `${one.what}: ${one.facts}`).join(' | '),
      paths_read: receipt?.paths_read.join(' '),
      paths_written: receipt?.paths_written.join(' '),
      hosts: receipt?.hosts.join(' '),
      secrets: receipt?.secrets_used.join(' '),
      created: new Date(row.created).toISOString(),
    };
    return CSV_FIELDS.map((field) => cell(values[field])).join(',');
  });
  return [CSV_FIELDS.join(','), ...lines].join('\r\n') + '\r\n';
}
