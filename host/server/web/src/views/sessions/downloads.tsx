/** Receipts of a turn as a file. */

import { useState } from 'preact/hooks';
import { Problem } from '../../api/problem';
import { save } from '../../lib/save';
import { allReceipts } from '../../state/open';
import { text } from '../../text';
import { ProblemPanel } from '../../ui/problem';

export function Downloads({ session, message }: { session: string; message: string }) {
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const give = async () => {
    setBusy(true);
    setProblem(undefined);
    try {
      const { rows } = await allReceipts(session, message);
      save(`receipts-${message}.json`, 'application/json', JSON.stringify(rows, null, 2));
    } catch (error) {
      setProblem(Problem.of(error));
    }
    setBusy(false);
  };
  // The server's table has no cell that a spreadsheet computes.
  const table = `/v1/sessions/${encodeURIComponent(session)}/receipts?message=${encodeURIComponent(message)}&format=csv`;
  return (
    <>
      <button type="button" class="small" disabled={busy} onClick={() => void give()}>
        {text.glass.json}
      </button>
      <a class="button small" href={table} download={`receipts-${message}.csv`}>
        {text.glass.csv}
      </a>
      {problem && <ProblemPanel problem={problem} />}
    </>
  );
}
