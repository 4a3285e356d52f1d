import { describe, expect, it } from 'vitest';

import { daysBefore, everyDay, sums, tokens, total } from './rows';
import type { UsageRow } from './rows';

const row = (day: string, agent: string, model: string, n: number): UsageRow => ({
  day,
  agent,
  model,
  turns: 1,
  steps: n,
  input_tokens: 10 * n,
  cached_tokens: 0,
  output_tokens: n,
  tool_calls: n,
  fuel: 100 * n,
});

const ROWS = [
  row('2026-03-02', 'scout', 'fast', 1),
  row('2026-02-28', 'scout', 'strong', 2),
  row('2026-02-28', 'boss', 'strong', 5),
];

describe('usage', () => {
  it('is summed by day in the order of days', () => {
    const days = sums(ROWS, 'day');
    expect(days.map((day) => [day.name, day.turns, tokens(day)])).toEqual([
      ['2026-02-28', 2, 77],
      ['2026-03-02', 1, 11],
    ]);
  });

  it('is summed by agent and model, the most tokens first', () => {
    expect(sums(ROWS, 'agent').map((sum) => [sum.name, sum.fuel])).toEqual([
      ['boss', 500],
      ['scout', 300],
    ]);
    expect(sums(ROWS, 'model').map((sum) => sum.name)).toEqual(['strong', 'fast']);
  });

  it('sums to the same total whatever it is summed by', () => {
    const whole = total(ROWS);
    for (const by of ['day', 'agent', 'model'] as const)
      expect(total(sums(ROWS, by))).toEqual(whole);
  });

  it('keeps names that objects have by themselves apart', () => {
    const odd = sums([row('2026-01-01', '__proto__', 'constructor', 1)], 'agent');
    expect(odd.map((sum) => sum.name)).toEqual(['__proto__']);
  });

  it('shows days without use, over the end of a month', () => {
    const days = everyDay(sums(ROWS, 'day'), '2026-02-27', '2026-03-02');
    expect(days.map((day) => [day.name, day.turns])).toEqual([
      ['2026-02-27', 0],
      ['2026-02-28', 2],
      ['2026-03-01', 0],
      ['2026-03-02', 1],
    ]);
    expect(daysBefore('2026-03-01', 1)).toBe('2026-02-28');
  });
});
