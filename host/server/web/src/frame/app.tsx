/** The page: who looks at it, the frame, and the view that the address names. */

import { useComputed } from '@preact/signals';
import { useEffect, useErrorBoundary, useRef } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import { lookMe, me } from '../state/me';
import { spoken } from '../state/live';
import { place, segment } from '../router';
import { VIEWS } from '../routes';
import { text } from '../text';
import { Empty, Waiting } from '../ui/basics';
import { ProblemPanel } from '../ui/problem';
import { Frame } from './frame';
import { Login } from './login';
import { LoadedView } from './loaded';

export function App() {
  useEffect(() => {
    if (segment.peek() !== 'login') void lookMe();
    const look = () => {
      const seen = document.visibilityState === 'visible' && segment.peek() !== 'login';
      if (seen && me.peek().state !== 'out') void lookMe();
    };
    const timer = setInterval(look, 60_000);
    document.addEventListener('visibilitychange', look);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', look);
    };
  }, []);
  return (
    <>
      <Inside />
      <div class="sr-only" role="status" aria-live="polite">
        {spoken.value}
      </div>
    </>
  );
}

function Inside() {
  const now = me.value;
  const at = segment.value;
  if (at === 'login' || now.state === 'out') return <Login lost={now.state === 'out' && now.lost} />;
  if (now.state === 'unreachable') {
    return (
      <main class="alone">
        <h1>{text.name}</h1>
        <ProblemPanel problem={now.problem} retry={() => void lookMe()}>
          <p class="note">{text.frame.unreachable}</p>
        </ProblemPanel>
      </main>
    );
  }
  if (now.state === 'unknown') {
    return (
      <main class="alone">
        <Waiting>{text.frame.loading}</Waiting>
      </main>
    );
  }
  return (
    <Frame>
      <CurrentView />
    </Frame>
  );
}

function CurrentView() {
  const row = useComputed(() => VIEWS.find((one) => one.segment === segment.value)).value;
  useEffect(() => {
    document.title = row ? `${row.label} · ${text.name}` : text.name;
  }, [row]);
  const path = place.value.path.join('/');
  const first = useRef(true);
  useEffect(() => {
    // What had the focus is gone with the view that it was on.
    if (!first.current && document.activeElement === document.body) document.getElementById('main')?.focus({ preventScroll: true });
    first.current = false;
  }, [path]);
  if (!row) {
    return (
      <div class="view">
        <Empty title={text.frame.notFound}>
          <p>{text.frame.notFoundHow}</p>
          <a href="/sessions">{text.nav.sessions}</a>
        </Empty>
      </div>
    );
  }
  return (
    <Bounded key={row.segment}>
      <LoadedView row={row} path={place.value.path.slice(1)} query={place.value.query} />
    </Bounded>
  );
}

/** One view that fails does not take the others along. */
function Bounded({ children }: { children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary();
  if (error) {
    return (
      <div class="view">
        <h1>{text.frame.broken}</h1>
        <ProblemPanel problem={error} retry={reset} />
      </div>
    );
  }
  return <>{children}</>;
}
