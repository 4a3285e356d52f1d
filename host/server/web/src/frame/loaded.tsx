/** A view that is loaded when it is first shown. */

import { useEffect, useState } from 'preact/hooks';
import type { View, ViewRow } from '../routes';
import { text } from '../text';
import { Waiting } from '../ui/basics';
import { loadAnew, whyMissing } from '../ui/missing';
import { ProblemPanel } from '../ui/problem';

const loaded = new Map<string, View>();

export function LoadedView(props: { row: ViewRow; path: readonly string[]; query: URLSearchParams }) {
  const { row, path, query } = props;
  const [, draw] = useState(0);
  const [problem, setProblem] = useState<unknown>();
  const Shown = loaded.get(row.segment);
  useEffect(() => {
    if (Shown) return;
    let left = false;
    row.load().then(
      (module) => {
        loaded.set(row.segment, module.default);
        if (!left) draw((n) => n + 1);
      },
      async () => {
        const why = await whyMissing();
        if (!left) setProblem(why);
      },
    );
    return () => {
      left = true;
    };
  }, [row]);
  if (Shown) return <Shown path={path} query={query} />;
  if (problem) {
    return (
      <div class="view">
        <ProblemPanel problem={problem}>
          <button type="button" class="small" onClick={() => void loadAnew()}>
            {text.actions.reload}
          </button>
        </ProblemPanel>
      </div>
    );
  }
  return (
    <div class="view">
      <Waiting>{text.frame.loading}</Waiting>
    </div>
  );
}
