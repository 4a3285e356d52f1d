/** Deleting a session: what goes along is named first. */

import { useState } from 'preact/hooks';
import { api, got, send } from '../../api/client';
import { Problem } from '../../api/problem';
import { bytes } from '../../lib/format';
import { useLoad } from '../../lib/load';
import { go } from '../../router';
import { touchSessions } from '../../state/sessions';
import { text } from '../../text';
import { Waiting } from '../../ui/basics';
import { Dialog } from '../../ui/dialog';
import { ProblemPanel } from '../../ui/problem';

/** What a session holds. */
interface Contents {
  messages: number;
  subagents: number;
  receipts: number;
  attachments: number;
  attachment_bytes: number;
  changes: number;
  running: boolean;
}

export function Removal({ session, onClose }: { session: string; onClose: () => void }) {
  const contents = useLoad<Contents>(() => send('GET', `/v1/sessions/${encodeURIComponent(session)}/contents`), [session]);
  const [problem, setProblem] = useState<Problem>();
  const [deleting, setDeleting] = useState(false);
  const found = contents.data;
  const remove = async () => {
    setDeleting(true);
    try {
      await got(api.DELETE('/v1/sessions/{id}', { params: { path: { id: session } } }));
      onClose();
      touchSessions();
      go('/sessions', { replace: true });
    } catch (error) {
      setProblem(Problem.of(error));
      setDeleting(false);
    }
  };
  const lines = found
    ? [
        found.messages > 0 && text.removal.messages(found.messages),
        found.subagents > 0 && text.removal.subagents(found.subagents),
        found.receipts > 0 && text.removal.receipts(found.receipts),
        found.attachments > 0 && text.removal.attachments(found.attachments, bytes(found.attachment_bytes)),
        found.changes > 0 && text.removal.changes(found.changes),
      ].filter((one) => one !== false)
    : [];
  return (
    <Dialog
      title={text.removal.title}
      onClose={onClose}
      actions={
        <>
          <button type="button" onClick={onClose}>
            {text.removal.keep}
          </button>
          <button type="button" class="danger" disabled={!found || found.running || deleting} onClick={() => void remove()}>
            {deleting ? text.removal.deleting : text.removal.sure}
          </button>
        </>
      }
    >
      {contents.problem && <ProblemPanel problem={contents.problem} retry={contents.reload} />}
      {!found && !contents.problem && <Waiting>{text.removal.counting}</Waiting>}
      {found && (
        <>
          <p>{text.removal.goes}</p>
          <ul>
            {lines.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
          {found.running && <p class="banner-in amber">{text.removal.running}</p>}
        </>
      )}
      {problem && <ProblemPanel problem={problem} />}
    </Dialog>
  );
}
