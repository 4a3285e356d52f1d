import { describe, expect, it } from 'vitest';
import { bytes, clock, exact, fuel, millis, percent, running, short, tokens } from '../src/lib/format';

describe('numbers', () => {
  it('have units, and few digits', () => {
    expect([0, 7, 999, 1000, 1234, 9_960, 99_950, 999_499, 999_500, 2_400_000].map(tokens)).toEqual([
      '0 tok', '7 tok', '999 tok', '1k tok', '1.2k tok', '10k tok', '100k tok', '999k tok', '1M tok', '2.4M tok',
    ]);
    expect([2_400_000, 12, 1_000_000_000].map(fuel)).toEqual(['2.4 M fuel', '12 fuel', '1 G fuel']);
    expect([0, 1023, 1024, 3_250_586, 2 ** 40].map(bytes)).toEqual(['0 B', '1023 B', '1 KiB', '3.1 MiB', '1 TiB']);
    expect(exact(1_234_567, 'fuel')).toBe('1,234,567 fuel');
    expect(short(Number.NaN)).toBe('–');
  });

  it('of time change their unit where they would get long', () => {
    expect([0, 0.4, 41.2, 999.4, 999.6, 2_100, 9_960, 59_600, 72_000, 3_600_000, 7_500_000].map(millis)).toEqual([
      '0 ms', '< 1 ms', '41 ms', '999 ms', '1 s', '2.1 s', '10 s', '1 min 0 s', '1 min 12 s', '1 h 0 min', '2 h 5 min',
    ]);
    expect([0, 900, 12_700].map(running)).toEqual(['0 s', '0 s', '12 s']);
    expect(percent(24, 100)).toBe('24 %');
    expect(percent(1, 0)).toBe('–');
  });

  it('say the day of what is not of today', () => {
    const now = new Date(2026, 10, 24, 12, 0, 0).getTime();
    expect(clock(new Date(2026, 10, 24, 9, 5, 7).getTime(), now)).toBe('09:05:07');
    expect(clock(new Date(2026, 2, 3, 14, 2, 0).getTime(), now)).toBe('3 Mar 14:02');
    expect(clock(new Date(2025, 2, 3, 14, 2, 0).getTime(), now)).toBe('3 Mar 2025 14:02');
  });
});
