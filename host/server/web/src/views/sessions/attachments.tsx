/** Files that tools handed over: seen here where they are harmless, saved otherwise. */

import { useEffect, useState } from 'preact/hooks';
import { Problem } from '../../api/problem';
import { exact } from '../../lib/foreign';
import { bytes } from '../../lib/format';
import type { AttachmentRow } from '../../state/open';
import { text } from '../../text';
import { Waiting } from '../../ui/basics';
import { Dialog } from '../../ui/dialog';
import { Block, Name } from '../../ui/foreign';
import { ProblemPanel } from '../../ui/problem';

const MAX_VIEW = 4 << 20;
const TEXTS = ['application/json', 'text/csv', 'text/plain', 'text/markdown'];
const IMAGES = ['image/gif', 'image/jpeg', 'image/png', 'image/webp'];

const href = (session: string, id: string) => `/v1/sessions/${encodeURIComponent(session)}/attachments/${encodeURIComponent(id)}`;

export function Attachments({ session, files }: { session: string; files: readonly AttachmentRow[] }) {
  const [seen, setSeen] = useState<AttachmentRow>();
  return (
    <section class="attachments" aria-label={text.chat.attachments}>
      <h3>{text.chat.attachments}</h3>
      <ul class="plain">
        {files.map((file) => (
          <li key={file.id}>
            <Name of={file.name} code most={120} /> <span class="note num">{bytes(file.size)}</span>
            <button type="button" class="small" onClick={() => setSeen(file)}>
              {text.chat.view}
            </button>
            <a class="button small" href={href(session, file.id)} download="">
              {text.chat.download}
            </a>
          </li>
        ))}
      </ul>
      {seen && <Viewer session={session} file={seen} onClose={() => setSeen(undefined)} />}
    </section>
  );
}

function Viewer({ session, file, onClose }: { session: string; file: AttachmentRow; onClose: () => void }) {
  const [content, setContent] = useState<{ text: string } | { url: string }>();
  const [problem, setProblem] = useState<Problem>();
  const kind = file.media_type.split(';')[0]?.trim() ?? '';
  const known = (TEXTS.includes(kind) || IMAGES.includes(kind)) && file.size <= MAX_VIEW;
  useEffect(() => {
    if (!known) return;
    let url = '';
    let left = false;
    (async () => {
      const answer = await fetch(href(session, file.id), { credentials: 'same-origin' });
      if (!answer.ok) throw Problem.from(answer, await answer.json().catch(() => undefined));
      if (TEXTS.includes(kind)) return { text: await answer.text() };
      // Only as a picture: an SVG or a page is none of these kinds.
      url = URL.createObjectURL(new Blob([await answer.arrayBuffer()], { type: kind }));
      return { url };
    })().then(
      (found) => !left && setContent(found),
      (error: unknown) => !left && setProblem(Problem.of(error)),
    );
    return () => {
      left = true;
      if (url) URL.revokeObjectURL(url);
    };
  }, [file.id]);
  return (
    <Dialog
      title={text.chat.viewing(exact(file.name, 80))}
      onClose={onClose}
      wide
      actions={
        <>
          <a class="button" href={href(session, file.id)} download="">
            {text.chat.download}
          </a>
          <button type="button" class="primary" onClick={onClose}>
            {text.actions.close}
          </button>
        </>
      }
    >
      {!known && <p>{file.size > MAX_VIEW ? text.chat.tooLarge : text.chat.notShown}</p>}
      {problem && <ProblemPanel problem={problem} />}
      {known && !content && !problem && <Waiting>{text.frame.loading}</Waiting>}
      {content && 'text' in content && <Block of={content.text} most={100_000} />}
      {content && 'url' in content && <img class="picture" src={content.url} alt={exact(file.name, 200)} />}
    </Dialog>
  );
}
