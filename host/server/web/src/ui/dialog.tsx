/** A dialog: the rest of the page waits, `Esc` closes it, and the focus goes back. */

import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';

export function Dialog(props: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** What can be done, at the bottom. */
  actions?: ComponentChildren;
  wide?: boolean;
}) {
  const box = useRef<HTMLDialogElement>(null);
  const title = useId();
  const close = useRef(props.onClose);
  close.current = props.onClose;
  // Before the browser paints: whoever clicked on sees the dialog, not what lies below it.
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const dialog = box.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => {
      dialog?.close();
      if (before?.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={box}
      class={props.wide ? 'wide' : undefined}
      aria-labelledby={title}
      onCancel={(event) => {
        event.preventDefault();
        close.current();
      }}
    >
      <h2 id={title}>{props.title}</h2>
      <div class="dialog-body">{props.children}</div>
      {props.actions && <div class="dialog-actions">{props.actions}</div>}
    </dialog>
  );
}
