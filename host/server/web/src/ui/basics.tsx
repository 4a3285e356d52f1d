/** Small parts that every view is made of. */

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import * as format from '../lib/format';
import { text } from '../text';

/** A number with its unit; all its digits when it is hovered or read aloud. */
export function Num({ value, unit }: { value: number; unit: 'tok' | 'fuel' | 'ms' | 'B' | string }) {
  const shown = {
    tok: format.tokens,
    fuel: format.fuel,
    ms: format.millis,
    B: format.bytes,
  }[unit];
  const exact = format.exact(value, unit === 'B' ? text.units.bytes : unit === 'tok' ? text.units.tokens : unit);
  return (
    <data class="num" value={value} title={exact}>
      {shown ? shown(value) : `${format.short(value)} ${unit}`}
    </data>
  );
}

/** A time: how long ago, or the clock; all of it when it is hovered. */
export function When({ at, as = 'clock' }: { at: number; as?: 'clock' | 'ago' }) {
  const date = new Date(at);
  const iso = Number.isNaN(date.getTime()) ? '' : date.toISOString();
  return (
    <time class="num" dateTime={iso} title={iso}>
      {as === 'ago' ? format.ago(at) : format.clock(at)}
    </time>
  );
}

/** A thin bar of what is used of a limit; amber from 80 %. */
export function Bar({ used, of, label, shown }: { used: number; of: number; label: string; shown?: string }) {
  const part = of > 0 ? Math.min(1, used / of) : 0;
  const words = shown ?? format.percent(used, of);
  return (
    <span class={`bar${part >= 0.8 ? ' high' : ''}`}>
      <span class="bar-label">{label}</span>
      <meter class="bar-meter" min={0} max={1} value={part} aria-label={label} aria-valuetext={words}>
        {words}
      </meter>
      <span class="bar-value num">{words}</span>
    </span>
  );
}

/** The words where there is nothing: what would be here, and how it comes to be. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <div class="empty-how">{children}</div>}
    </div>
  );
}

/** Something that is not there yet, in words. */
export function Waiting({ children }: { children: ComponentChildren }) {
  return (
    <p class="waiting" role="status">
      {children}
    </p>
  );
}

/** Copies a text, and says that it did. */
export function Copy({ of, label = text.actions.copy }: { of: string; label?: string }) {
  const [state, setState] = useState<'no' | 'done' | 'failed'>('no');
  const timer = useRef<number>(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(of);
      setState('done');
    } catch {
      setState('failed');
    }
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => setState('no'), 2_000);
  };
  return (
    <button type="button" class="small" onClick={copy}>
      <span aria-live="polite">
        {state === 'done' ? text.actions.copied : state === 'failed' ? text.actions.notCopied : label}
      </span>
    </button>
  );
}

/** A command for a terminal, to be copied. */
export function Command({ of }: { of: string }) {
  return (
    <span class="command">
      <code tabIndex={0}>{of}</code>
      <Copy of={of} />
    </span>
  );
}
