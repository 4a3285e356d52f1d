/** Something that is fetched for a view, and fetched again when it is said so. */

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { Problem } from '../api/problem';

/** `data` stays while it is fetched again. */
export interface Loaded<T> {
  data: T | undefined;
  problem: Problem | undefined;
  loading: boolean;
  reload: () => void;
  /** Puts another value there, as an answer of the server gave it. */
  set: (data: T) => void;
}

/** Fetches when `deps` change; an answer that came too late is dropped. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, deps: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<{ data?: T; problem?: Problem; loading: boolean }>({ loading: true });
  const [turn, setTurn] = useState(0);
  const last = useRef(deps);
  useEffect(() => {
    const abort = new AbortController();
    const same = last.current.every((dep, at) => Object.is(dep, deps[at]));
    last.current = deps;
    setState((before) => (same ? { ...before, loading: true } : { loading: true }));
    load(abort.signal).then(
      (data) => !abort.signal.aborted && setState({ data, loading: false }),
      (error: unknown) => {
        if (!abort.signal.aborted) setState((before) => ({ ...before, problem: Problem.of(error), loading: false }));
      },
    );
    return () => abort.abort();
  }, [...deps, turn]);
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  const set = useCallback((data: T) => setState({ data, loading: false }), []);
  return { data: state.data, problem: state.problem, loading: state.loading, reload, set };
}
