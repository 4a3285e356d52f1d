/** Numbers for people: short, and always with a unit. The exact one is for the `title`. */

const EXACT = new Intl.NumberFormat('en-US');

function digits(value: number): string {
  const rounded = value < 9.95 ? value.toFixed(1) : value.toFixed(0);
  return rounded.replace(/\.0$/, '');
}

/** An amount with `k`, `M`, `G`, `T`. */
export function short(value: number, gap = ''): string {
  if (!Number.isFinite(value)) return '–';
  const sign = value < 0 ? '-' : '';
  let rest = Math.abs(value);
  if (rest < 1000) return sign + String(Math.round(rest));
  for (const unit of ['k', 'M', 'G', 'T']) {
    rest /= 1000;
    // 999.6 would round to 1000.
    if (rest < 999.5 || unit === 'T') return `${sign}${digits(rest)}${gap}${unit}`;
  }
  return '–';
}

/** `1.2k tok`. */
export function tokens(value: number): string {
  return `${short(value)} tok`;
}

/** `2.4 M fuel`. */
export function fuel(value: number): string {
  return `${short(value, ' ')} fuel`;
}

/** `3.1 MiB`. */
export function bytes(value: number): string {
  if (!Number.isFinite(value)) return '–';
  let rest = Math.abs(value);
  if (rest < 1024) return `${Math.round(value)} B`;
  for (const unit of ['KiB', 'MiB', 'GiB', 'TiB']) {
    rest /= 1024;
    if (rest < 1023.5 || unit === 'TiB') return `${value < 0 ? '-' : ''}${digits(rest)} ${unit}`;
  }
  return '–';
}

/** `41 ms`, `2.1 s`, `1 min 12 s`, `2 h 5 min`. */
export function millis(value: number): string {
  if (!Number.isFinite(value) || value < 0) return '–';
  if (value < 1) return value === 0 ? '0 ms' : '< 1 ms';
  if (value < 999.5) return `${Math.round(value)} ms`;
  const seconds = value / 1000;
  if (seconds < 9.95) return `${digits(seconds)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.round((whole % 3600) / 60) % 60} min`;
}

/** `12 s`: a time that still runs, in whole seconds. */
export function running(value: number): string {
  return millis(Math.max(0, Math.floor(value / 1000) * 1000)).replace('0 ms', '0 s');
}

/** The number with all its digits, and the unit. */
export function exact(value: number, unit: string): string {
  return `${EXACT.format(value)} ${unit}`;
}

/** `24 %`. */
export function percent(part: number, whole: number): string {
  if (!(whole > 0)) return '–';
  return `${Math.round((100 * part) / whole)} %`;
}

/** A count with its word: `1 file`, `3 files`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${short(count)} ${count === 1 ? one : many}`;
}

const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const YEAR = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });

/** `14:02:11`, of another day `3 Mar 14:02`, of another year with it. */
export function clock(at: number, now = Date.now()): string {
  const [then, today] = [new Date(at), new Date(now)];
  const time = CLOCK.format(then);
  if (then.toDateString() === today.toDateString()) return time;
  const day = then.getFullYear() === today.getFullYear() ? DAY : YEAR;
  return `${day.format(then)} ${time.slice(0, 5)}`;
}

/** `now`, `5 min`, `3 h`, `2 d`, then the day. */
export function ago(at: number, now = Date.now()): string {
  const seconds = Math.max(0, (now - at) / 1000);
  if (seconds < 60) return 'now';
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  if (seconds < 7 * 86_400) return `${Math.floor(seconds / 86_400)} d`;
  const then = new Date(at);
  return (then.getFullYear() === new Date(now).getFullYear() ? DAY : YEAR).format(then);
}
