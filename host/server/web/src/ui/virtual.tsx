/** A long list of which only the rows in sight are on the page. Rows may have any height, and may
 * change it. */

import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
  type VirtualizerOptions,
} from '@tanstack/virtual-core';
import type { ComponentChildren, RefObject } from 'preact';
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks';

/** The handle of a list, for who wants to move it. */
export interface ListHandle {
  /** Shows the row; `end`: at the bottom. */
  show: (index: number, align?: 'auto' | 'start' | 'center' | 'end') => void;
  /** Whether the end is in sight. */
  atEnd: () => boolean;
}

export function VirtualList<Row>(props: {
  rows: readonly Row[];
  /** Must not change as long as it is the same row. */
  id: (row: Row) => string;
  row: (row: Row, index: number) => ComponentChildren;
  /** A guess of the height, in pixels. */
  estimate: (row: Row) => number;
  label: string;
  /** Stays at the end when rows come, as long as the end is in sight. */
  follow?: boolean;
  handle?: RefObject<ListHandle | null>;
  /** A `log` here is not read aloud word by word: the live region says what matters. */
  role?: 'list' | 'log' | 'group';
  class?: string;
  /** Above and below all rows. */
  before?: ComponentChildren;
  after?: ComponentChildren;
}) {
  const { rows, id, row, estimate, label, follow = false, role = 'list' } = props;
  const box = useRef<HTMLDivElement>(null);
  const [, draw] = useReducer((n: number) => n + 1, 0);
  const following = useRef(follow);
  /** Where the list was when it was moved or looked at last. */
  const top = useRef(0);
  const options = (): VirtualizerOptions<HTMLDivElement, HTMLDivElement> => ({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: (index) => {
      const one = rows[index];
      return one === undefined ? 40 : estimate(one);
    },
    getItemKey: (index) => {
      const one = rows[index];
      return one === undefined ? index : id(one);
    },
    overscan: 6,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => draw(undefined as never),
  });
  const [list] = useState(() => new Virtualizer<HTMLDivElement, HTMLDivElement>(options()));
  list.setOptions(options());
  useEffect(() => list._didMount(), []);
  useLayoutEffect(() => list._willUpdate());

  const atEnd = () => {
    const it = box.current;
    return !it || it.scrollHeight - it.scrollTop - it.clientHeight < 60;
  };
  if (props.handle) {
    props.handle.current = {
      show: (index, align = 'auto') => list.scrollToIndex(index, { align }),
      atEnd,
    };
  }
  const total = list.getTotalSize();
  useLayoutEffect(() => {
    const it = box.current;
    if (!follow || !following.current || !it) return;
    it.scrollTop = it.scrollHeight;
    top.current = it.scrollTop;
  });

  const items = list.getVirtualItems();
  const item = role === 'list' ? 'listitem' : undefined;
  return (
    <div
      ref={box}
      class={`virtual ${props.class ?? ''}`}
      tabIndex={-1}
      data-virtual=""
      data-steps=""
      onScroll={({ currentTarget: { scrollTop } }) => {
        // A row may have grown since the list was moved to its end: only who scrolls up leaves it.
        following.current = atEnd() || (following.current && scrollTop >= top.current);
        top.current = scrollTop;
      }}
    >
      {props.before}
      <div class="virtual-all" role={role} aria-live={role === 'log' ? 'off' : undefined} aria-label={label} style={{ height: `${total}px` }}>
        {items.map((one) => {
          const it = rows[one.index];
          if (it === undefined) return null;
          return (
            <div
              key={one.key}
              ref={(element) => list.measureElement(element)}
              class="virtual-row"
              role={item}
              aria-setsize={item ? rows.length : undefined}
              aria-posinset={item ? one.index + 1 : undefined}
              data-index={one.index}
              data-row={one.index}
              style={{ transform: `translateY(${one.start}px)` }}
            >
              {row(it, one.index)}
            </div>
          );
        })}
      </div>
      {props.after}
    </div>
  );
}
