/** Receipts of a turn as a file. */

import { useState } from 'preact/hooks';
import { Problem } from '../../api/problem';
import { save } from '../../lib/save';
import { allReceipts } from '../../state/open';
import { text } from '../../text';
import { ProblemPanel } from '../../ui/problem';
import { csv } from './receipt';

export function Downloads({ session, message }: { session: string; message: string }) {
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const give = async (kind: 'json' | 'csv') => {
    setBusy(true);
    setProblem(undefined);
    try {
      const { rows } = await allReceipts(session, message);
      const name = `receipts-${message}.${kind}`;
      if (kind === 'json') save(name, 'application/json', JSON.stringify(rows, null, 2));
      else save(name, 'text/csv', csv(rows));
    } catch (error) {
      setProblem(Problem.of(error));
    }
    setBusy(false);
  };
  return (
    <>
      <button type="button" class="small" disabled={busy} onClick={() => void give('json')}>
        {text.glass.json}
      </button>
      <button type="button" class="small" disabled={busy} onClick={() => void give('csv')}>
        {text.glass.csv}
      </button>
      {problem && <ProblemPanel problem={problem} />}
    </>
  );
}
