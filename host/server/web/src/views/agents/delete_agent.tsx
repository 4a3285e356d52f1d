/** Asks before an agent is deleted. */

import { useState } from 'preact/hooks';
import { Problem } from '../../api/problem';
import { go } from '../../router';
import { text } from '../../text';
import { Dialog } from '../../ui/dialog';
import { ProblemPanel } from '../../ui/problem';
import { remove } from './agent_data';

export function DeleteAgent({ name, onClose }: { name: string; onClose: () => void }) {
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);
  const go_on = async () => {
    setBusy(true);
    try {
      await remove(name);
      onClose();
      go('/agents', { replace: true });
    } catch (error) {
      setProblem(Problem.of(error));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={text.editor.deleteTitle(name)}
      onClose={onClose}
      actions={
        <>
          <button type="button" onClick={onClose}>
            {text.editor.keep}
          </button>
          <button type="button" class="danger" disabled={busy} onClick={() => void go_on()}>
            {text.editor.delete}
          </button>
        </>
      }
    >
      <p>{text.editor.deleteWhat}</p>
      {problem && <ProblemPanel problem={problem} />}
    </Dialog>
  );
}
