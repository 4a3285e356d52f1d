/** What a model wrote, as it meant it to look. */

import { useLayoutEffect, useRef } from 'preact/hooks';
import { markdown, MAX_MARKDOWN } from '../lib/markdown';
import { Block } from './foreign';

/** `plain`: it still comes, and is too long to be read anew with every word. */
export function Markdown({ of, plain = false }: { of: string; plain?: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const raw = plain || of.length > MAX_MARKDOWN;
  useLayoutEffect(() => {
    if (raw || !box.current) return;
    box.current.replaceChildren(markdown(of));
  }, [of, raw]);
  if (raw) return <Block of={of} />;
  return <div ref={box} class="markdown foreign" dir="auto" />;
}
