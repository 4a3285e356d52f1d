/** What the server says of a text, a moment after it was typed. */

import { useEffect, useState } from 'preact/hooks';
import { Problem } from '../../api/problem';
import { check, type Checked } from './agent_data';

/** Milliseconds without a key before the server is asked. */
const PAUSE = 300;

export interface CheckState {
  /** The last answer; it may be of an older text while another one is on its way. */
  result: Checked | undefined;
  busy: boolean;
  problem: Problem | undefined;
}

export function useChecked(slug: string, content: string, enabled: boolean): CheckState {
  const [state, setState] = useState<CheckState>({
    result: undefined,
    busy: enabled,
    problem: undefined,
  });
  useEffect(() => {
    if (!enabled) {
      setState({ result: undefined, busy: false, problem: undefined });
      return;
    }
    const abort = new AbortController();
    setState((before) => ({ ...before, busy: true }));
    const timer = setTimeout(() => {
      check(slug, content, abort.signal).then(
        (result) => !abort.signal.aborted && setState({ result, busy: false, problem: undefined }),
        (error: unknown) => {
          if (abort.signal.aborted) return;
          setState((before) => ({ ...before, busy: false, problem: Problem.of(error) }));
        },
      );
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [slug, content, enabled]);
  return state;
}
