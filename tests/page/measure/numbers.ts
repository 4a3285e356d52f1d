// Numbers, and how they are said.

/** The value below which such a part of all lies. */
export function quantile(values: number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? Number.NaN;
}

const short = (value: number) => (Math.abs(value) < 10 ? value.toFixed(2) : Math.round(value).toString());

/** A line of the result: `first paint: 96 ms (median of 10), 120 ms at most; reach 300 ms`. */
export function tell(what: string, ...facts: string[]): void {
  console.log(`${what}: ${facts.join("; ")}`);
}

/** Values in words. */
export function spread(values: number[], unit: string): string {
  const [half, most, all] = [quantile(values, 0.5), quantile(values, 0.99), Math.max(...values)];
  return `${short(half)} ${unit} median, ${short(most)} at p99, ${short(all)} at most, of ${values.length}`;
}

export const mib = (bytes: number) => `${(bytes / (1 << 20)).toFixed(1)} MiB`;
