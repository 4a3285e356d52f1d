/** The frame: what is said above every view, the sessions and views at the side, and the view. */

import type { ComponentChildren } from 'preact';
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { listed, step, useKeys } from '../lib/keys';
import { go, place, segment } from '../router';
import { VIEWS } from '../routes';
import { logout, mayAdmin, me, outdated } from '../state/me';
import { text } from '../text';
import { Dialog } from '../ui/dialog';
import { Questions } from './questions';
import { SessionList } from './session-list';
import icon from '../icon.svg';

/** Whether the side is open, where it is a sheet. */
export const sideOpen = signal(false);

export function Frame({ children }: { children: ComponentChildren }) {
  const [help, setHelp] = useState(false);
  const [href] = [place.value.href];
  useEffect(() => {
    sideOpen.value = false;
  }, [href]);
  const opener = useRef<HTMLButtonElement>(null);
  const wasOpen = useRef(false);
  useEffect(() => {
    // The focus goes along, into the sheet and back.
    if (sideOpen.value) document.querySelector<HTMLElement>('#side a, #side button')?.focus();
    else if (wasOpen.current && (document.activeElement === document.body || document.activeElement?.closest('#side'))) opener.current?.focus();
    wasOpen.current = sideOpen.value;
  }, [sideOpen.value]);
  useKeys([
    { key: '/', about: text.keys.search, run: search },
    { key: 'n', about: text.keys.new, run: () => go('/sessions/new') },
    { key: 'j', about: text.keys.next, held: true, run: () => step(1) },
    { key: 'k', about: text.keys.previous, held: true, run: () => step(-1) },
    { key: '?', about: text.keys.list, run: () => setHelp((on) => !on) },
    { key: 'Escape', about: text.keys.back, typing: true, run: escape },
  ]);
  return (
    <>
      <a class="skip button" href="#main" onClick={skip}>
        {text.nav.skip}
      </a>
      <section class="banners" aria-label={text.nav.notices}>
        <Outdated />
        <Questions />
      </section>
      <div class="columns">
        {sideOpen.value && (
          <button type="button" class="shade" aria-label={text.actions.close} onClick={() => (sideOpen.value = false)} />
        )}
        <Side />
        <main class="view-box" id="main" tabIndex={-1} aria-label={text.nav.main} inert={sideOpen.value}>
          <div class="top">
            <button
              ref={opener}
              type="button"
              class="small"
              aria-expanded={sideOpen.value}
              aria-controls="side"
              onClick={() => (sideOpen.value = true)}
            >
              ☰ {text.nav.menu}
            </button>
          </div>
          {children}
        </main>
      </div>
      {help && <Help onClose={() => setHelp(false)} />}
    </>
  );
}

function Side() {
  const caller = me.value;
  return (
    <aside class={`side${sideOpen.value ? ' open' : ''}`} id="side" aria-label={text.nav.side}>
      <div class="side-head">
        <a class="brand" href="/sessions">
          <img src={icon} alt="" width="20" height="20" />
          {text.name}
        </a>
        <a class="button small" href="/sessions/new">
          {text.nav.new}
        </a>
      </div>
      <SessionList />
      <div class="side-foot">
        <nav class="views" aria-label={text.nav.label}>
          {VIEWS.filter((row) => row.listed && (!row.admin || mayAdmin.value)).map((row) => (
            <a key={row.segment} href={`/${row.segment}`} aria-current={segment.value === row.segment ? 'page' : undefined}>
              {row.label}
            </a>
          ))}
        </nav>
        {caller.state === 'in' && (
          <div class="who">
            <span title={text.nav.who(caller.me.actor, caller.me.tenant, caller.me.scope)}>
              {text.nav.who(caller.me.actor, caller.me.tenant, caller.me.scope)}
            </span>
            {caller.me.keys && (
              <button type="button" class="link" onClick={() => void logout()}>
                {text.nav.logout}
              </button>
            )}
          </div>
        )}
      </div>
    </aside>
  );
}

function Outdated() {
  if (!outdated.value) return null;
  return (
    <div class="banner" role="status">
      <span>{text.frame.outdated}</span>
      <button type="button" class="small" onClick={() => location.reload()}>
        {text.actions.reload}
      </button>
    </div>
  );
}

function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog
      title={text.keys.title}
      onClose={onClose}
      actions={
        <button type="button" class="primary" onClick={onClose}>
          {text.actions.close}
        </button>
      }
    >
      <dl class="keys">
        {listed().map((binding) => (
          <>
            <dt>
              <kbd>{binding.key === 'Escape' ? 'Esc' : binding.key}</kbd>
            </dt>
            <dd>{binding.about}</dd>
          </>
        ))}
      </dl>
    </Dialog>
  );
}

/** The search of the view, or that of the sessions. */
function search(): void {
  const field =
    document.querySelector<HTMLElement>('main [data-search]') ?? document.querySelector<HTMLElement>('[data-search]');
  if (field?.closest('#side') && matchMedia('(max-width: 799px)').matches) sideOpen.value = true;
  requestAnimationFrame(() => field?.focus());
}

function escape(): boolean | void {
  const at = document.activeElement;
  if (sideOpen.value) {
    sideOpen.value = false;
    return;
  }
  if (at instanceof HTMLInputElement || at instanceof HTMLTextAreaElement || at instanceof HTMLSelectElement) {
    at.blur();
    document.getElementById('main')?.focus();
    return;
  }
  return false;
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}
