/** A part that is loaded when it is first shown. */

import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Problem } from '../api/problem';
import { text } from '../text';
import { Waiting } from './basics';
import { loadAnew, whyMissing } from './missing';
import { ProblemPanel } from './problem';

export function lazy<Props extends object>(load: () => Promise<{ default: ComponentType<Props> }>): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return function Lazy(props: Props) {
    const [, draw] = useState(0);
    const [problem, setProblem] = useState<Problem>();
    useEffect(() => {
      if (loaded) return;
      load().then(
        (module) => {
          loaded = module.default;
          draw((n) => n + 1);
        },
        async () => setProblem(await whyMissing()),
      );
    }, []);
    const Shown = loaded;
    if (Shown) return <Shown {...props} />;
    if (!problem) return <Waiting>{text.frame.loading}</Waiting>;
    return (
      <ProblemPanel problem={problem}>
        <button type="button" class="small" onClick={() => void loadAnew()}>
          {text.actions.reload}
        </button>
      </ProblemPanel>
    );
  };
}
