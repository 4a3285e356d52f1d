/** Login: a key once, or a link that opens once. */

import { useEffect, useState } from 'preact/hooks';
import { Problem } from '../api/problem';
import { go, place } from '../router';
import { login, lookMe, me } from '../state/me';
import { text } from '../text';
import { Command, Waiting } from '../ui/basics';

/** Where the person wanted to go. */
function wanted(): string {
  const next = place.peek().query.get('next') ?? '';
  const url = URL.canParse(next, location.origin) ? new URL(next, location.origin) : undefined;
  // A place of this page, however it is written.
  if (next.startsWith('/') && url?.origin === location.origin && !url.pathname.startsWith('/login')) return url.pathname + url.search;
  return place.peek().path[0] === 'login' ? '/sessions' : place.peek().href;
}

/** The word of the link, which is taken out of the address at once. */
function takeOnce(): string | undefined {
  const found = /^#once=([\w.~-]+)$/.exec(location.hash)?.[1];
  if (found) history.replaceState(history.state, '', location.pathname + location.search);
  return found;
}

const linked = takeOnce();

export function Login({ lost }: { lost: boolean }) {
  const [key, setKey] = useState('');
  const [state, setState] = useState<'no' | 'once' | 'sending'>(linked ? 'once' : 'no');
  const [wrong, setWrong] = useState('');

  const enter = async (body: { key: string } | { once: string }) => {
    try {
      await login(body);
      go(wanted(), { replace: true });
    } catch (error) {
      const problem = Problem.of(error);
      const denied = problem.status === 401 || problem.status === 403 || problem.status === 400;
      const words = 'once' in body ? text.login.onceFailed : text.login.wrong;
      setWrong(denied ? words : problem.sentence());
    }
    setState('no');
  };
  useEffect(() => {
    // Whoever is in already, or needs no key, has nothing to do here.
    if (linked && me.peek().state !== 'in') void enter({ once: linked });
    else void lookMe();
    // The link may be opened where this page is shown already.
    const look = () => {
      const once = takeOnce();
      if (!once) return;
      setState('once');
      setWrong('');
      void enter({ once });
    };
    addEventListener('hashchange', look);
    return () => removeEventListener('hashchange', look);
  }, []);
  const inside = me.value.state === 'in';
  useEffect(() => {
    // Also where another tab has logged this browser in.
    if (inside && !linked) go(wanted(), { replace: true });
  }, [inside]);

  return (
    <main class="alone login">
      <h1>{text.login.title}</h1>
      {lost && (
        <p class="problem" role="alert">
          {text.login.lost}
        </p>
      )}
      {state === 'once' ? (
        <Waiting>{text.login.once}</Waiting>
      ) : (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            setState('sending');
            setWrong('');
            void enter({ key: key.trim() });
          }}
        >
          <label for="key">{text.login.key}</label>
          <input
            id="key"
            name="key"
            type="password"
            autocomplete="current-password"
            spellcheck={false}
            required
            autofocus
            value={key}
            aria-describedby="key-how"
            aria-invalid={wrong !== ''}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
          {wrong && (
            <p class="problem" role="alert">
              {wrong}
            </p>
          )}
          <button type="submit" class="primary" disabled={state === 'sending'}>
            {state === 'sending' ? text.login.submitting : text.login.submit}
          </button>
        </form>
      )}
      <div id="key-how" class="note">
        <p>{text.login.how}</p>
        <Command of={text.login.command} />
        <p>{text.login.link}</p>
      </div>
    </main>
  );
}
