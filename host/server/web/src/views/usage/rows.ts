/** Usage as it is shown: summed by day, agent or model. */

/** What is counted. */
export interface Counts {
  turns: number;
  steps: number;
  input_tokens: number;
  cached_tokens: number;
  output_tokens: number;
  tool_calls: number;
  fuel: number;
}

/** A row as the server gives it, with the names that it was asked for. */
export interface UsageRow extends Counts {
  day?: string | null;
  agent?: string | null;
  model?: string | null;
}

/** What rows are summed by. */
export type By = 'day' | 'agent' | 'model';

/** A sum under its name. */
export interface Sum extends Counts {
  name: string;
}

/** The names of what is counted. */
export const COUNTS = [
  'turns',
  'steps',
  'input_tokens',
  'cached_tokens',
  'output_tokens',
  'tool_calls',
  'fuel',
] as const satisfies readonly (keyof Counts)[];

function nothing(name: string): Sum {
  const zero = Object.fromEntries(COUNTS.map((count) => [count, 0])) as unknown as Counts;
  return { name, ...zero };
}

function add(sum: Sum, row: Counts): void {
  for (const count of COUNTS) sum[count] += row[count];
}

/** Sums rows by a name: days in their order, everything else by tokens, the most first. */
export function sums(rows: readonly UsageRow[], by: By): Sum[] {
  const all = new Map<string, Sum>();
  for (const row of rows) {
    const name = row[by] ?? '';
    const sum = all.get(name) ?? nothing(name);
    add(sum, row);
    all.set(name, sum);
  }
  const list = [...all.values()];
  return by === 'day'
    ? list.sort((a, b) => (a.name < b.name ? -1 : 1))
    : list.sort((a, b) => tokens(b) - tokens(a) || (a.name < b.name ? -1 : 1));
}

/** The sum of all. */
export function total(rows: readonly Counts[]): Sum {
  const sum = nothing('');
  for (const row of rows) add(sum, row);
  return sum;
}

/** All tokens of a sum. */
export function tokens(counts: Counts): number {
  return counts.input_tokens + counts.output_tokens;
}

/** Every day from the first to the last one, with those on which nothing was used. */
export function everyDay(days: readonly Sum[], since: string, until: string): Sum[] {
  const known = new Map(days.map((day) => [day.name, day]));
  const all: Sum[] = [];
  const end = Date.parse(`${until}T00:00:00Z`);
  for (let at = Date.parse(`${since}T00:00:00Z`); at <= end && all.length < 400; at += 86_400_000) {
    const name = new Date(at).toISOString().slice(0, 10);
    all.push(known.get(name) ?? nothing(name));
  }
  return all;
}

/** The day that lies some days before another one. */
export function daysBefore(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) - days * 86_400_000).toISOString().slice(0, 10);
}
