/** A request that failed: what, why, and a way on. */

import type { ComponentChildren } from 'preact';
import { Problem } from '../api/problem';
import { visible, cut } from '../lib/foreign';
import { text } from '../text';

/** `quiet`: it is one of many, and interrupts nobody who listens to the page. */
export function ProblemPanel(props: { problem: unknown; retry?: () => void; quiet?: boolean; children?: ComponentChildren }) {
  const problem = Problem.of(props.problem);
  const way = text.problems.ways[problem.kind];
  return (
    <div class="problem" role={props.quiet ? 'note' : 'alert'}>
      <p class="problem-what">{problem.sentence()}</p>
      {problem.hint && <p class="problem-hint">{visible(cut(problem.hint, 1_000))}</p>}
      {way && <p class="problem-hint">{way}</p>}
      <div class="problem-ways">
        {props.retry && (
          <button type="button" class="small" onClick={props.retry}>
            {text.actions.again}
          </button>
        )}
        {props.children}
      </div>
    </div>
  );
}
