/** What a model wrote, as it meant it to look. While it still comes, the parts that are finished stay as
 * they are: only the end is read anew. */

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { parts, readable } from '../lib/markdown';
import { Block } from './foreign';

/** Parts at the end that may still change with what comes. */
const OPEN = 3;
/** Reading may take this part of the time, where a text comes word by word. */
const SHARE = 4;
/** Reading that takes less than this, in milliseconds, is done at once. */
const QUICK = 6;

/** What is drawn, and how far it is finished. */
class Drawn {
  /** The text of the finished parts. */
  done = '';
  /** The nodes of them. */
  nodes = 0;
  /** What was drawn last, and whether more of it was to come. */
  last: string | undefined;
  live = false;

  /** Draws the text; `false`: it cannot be read as markdown. */
  draw(box: HTMLElement, of: string, live: boolean): boolean {
    this.last = of;
    this.live = live;
    const source = readable(of);
    if (!live || !source.startsWith(this.done)) {
      this.done = '';
      this.nodes = 0;
    }
    const found = parts(source.slice(this.done.length));
    if (!found) return false;
    while (box.childNodes.length > this.nodes) box.lastChild?.remove();
    found.forEach((part, at) => {
      box.append(part.nodes());
      if (!live || at >= found.length - OPEN) return;
      this.done = source.slice(0, this.done.length + part.length);
      this.nodes = box.childNodes.length;
    });
    return true;
  }
}

/** `live`: it still comes. */
export function Markdown({ of, live = false }: { of: string; live?: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const drawn = useRef(new Drawn());
  const next = useRef(0);
  const [raw, setRaw] = useState<string>();
  const [, again] = useState(0);
  useLayoutEffect(() => {
    if (raw !== undefined || !box.current) return undefined;
    if (drawn.current.last === of && drawn.current.live === live) return undefined;
    const wait = live ? next.current - performance.now() : 0;
    if (wait > 0) {
      const timer = setTimeout(() => again((turn) => turn + 1), wait);
      return () => clearTimeout(timer);
    }
    const begun = performance.now();
    if (!drawn.current.draw(box.current, of, live)) setRaw(of);
    const took = performance.now() - begun;
    next.current = took < QUICK ? 0 : begun + took * SHARE;
    return undefined;
  });
  if (raw !== undefined) return <Block of={of} />;
  return <div ref={box} class="markdown foreign" dir="auto" />;
}
