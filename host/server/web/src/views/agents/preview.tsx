/** Exactly what a model would be sent first, and what each part of it costs. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { api, got, type Of } from '../../api/client';
import * as format from '../../lib/format';
import { useLoad } from '../../lib/load';
import { text } from '../../text';
import { Copy, Num, Waiting } from '../../ui/basics';
import { Block, Name } from '../../ui/foreign';
import { ProblemPanel } from '../../ui/problem';
import { Table } from '../../ui/table';
import { blocksOf, byKind, type Block as Part } from './blocks';

const t = text.preview;

type Previewed = Of<'Previewed'>;

export function Preview(props: {
  /** The agent as requests name it; `undefined` = it was never saved. */
  name: string | undefined;
  /** The text as it stands in the editor, where that is another one. */
  edited: { slug: string; text: string } | undefined;
}) {
  const { name } = props;
  const edited = useSettled(props.edited?.text);
  const [words, setWords] = useState(t.messageDefault);
  const [asked, setAsked] = useState(t.messageDefault);
  const of = edited === undefined ? { agent: name ?? null } : { definition: edited };
  const { data, problem, reload } = useLoad<Previewed>(
    (signal) => got(api.POST('/v1/preview', { body: { ...of, text: asked }, signal })),
    [name, asked, edited],
  );
  // While the next one is made, the last one stands.
  const last = useRef<Previewed>(undefined);
  if (data) last.current = data;
  const shown = problem ? undefined : (data ?? last.current);
  return (
    <div class="preview">
      <h2>{t.title}</h2>
      <p class="note">
        {t.about} {props.edited && t.asEdited}
      </p>
      <form
        class="preview-words"
        onSubmit={(event) => {
          event.preventDefault();
          setAsked(words);
        }}
      >
        <label for="preview-words">{t.message}</label>
        <input
          id="preview-words"
          value={words}
          maxLength={4_000}
          onInput={(event) => setWords(event.currentTarget.value)}
          onBlur={() => words.trim() !== '' && setAsked(words)}
        />
      </form>
      {problem && <ProblemPanel problem={problem} retry={reload} />}
      {!shown && !problem && <Waiting>{t.loading}</Waiting>}
      {shown && <Shown of={shown} />}
    </div>
  );
}

/** How long nothing is typed before the server is asked. */
const SETTLES = 400;

/** A text once nothing more is typed. */
function useSettled(now: string | undefined): string | undefined {
  const [settled, setSettled] = useState(now);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(now), SETTLES);
    return () => clearTimeout(timer);
  }, [now]);
  return settled;
}

function Shown({ of }: { of: Previewed }) {
  const blocks = blocksOf(of.request, of.blocks);
  const sum = (key: 'bytes' | 'tokens') => blocks.reduce((all, block) => all + block[key], 0);
  const total = { kind: 'total', count: blocks.length, bytes: sum('bytes'), tokens: sum('tokens') };
  return (
    <>
      <dl class="facts">
        <dt>{t.model}</dt>
        <dd>
          <Name of={of.model} code />
        </dd>
      </dl>
      {of.notes.length > 0 && (
        <section aria-label={t.notes}>
          <h3>{t.notes}</h3>
          <ul class="notes">
            {of.notes.map((note) => (
              <li key={note}>
                <Name of={note} most={1_000} />
              </li>
            ))}
          </ul>
        </section>
      )}
      <Table
        caption={t.blocks}
        class="fit"
        rows={[...byKind(blocks), total]}
        id={(row) => row.kind}
        columns={[
          {
            key: 'kind',
            head: t.block,
            names: true,
            cell: (row) =>
              row.kind === 'total' ? <strong>{t.total}</strong> : (t.kinds[row.kind] ?? row.kind),
          },
          { key: 'count', head: t.count, right: true, cell: (row) => row.count },
          {
            key: 'bytes',
            head: t.bytes,
            right: true,
            cell: (row) => <Num value={row.bytes} unit="B" />,
          },
          {
            key: 'tokens',
            head: t.tokens,
            right: true,
            cell: (row) => <Num value={row.tokens} unit="tok" />,
          },
          {
            key: 'share',
            head: t.share,
            cell: (row) =>
              row.kind === 'total' ? null : <Share part={row.tokens} whole={total.tokens} />,
          },
        ]}
      />
      <p class="note">{t.estimated}</p>
      <section aria-label={t.exact} class="exact">
        <h3>{t.exact}</h3>
        {blocks.map((block, at) => (
          <Exact key={at} block={block} open={at === 0} />
        ))}
        <Copy of={JSON.stringify(of.request, null, 2)} label={t.copyAll} />
      </section>
    </>
  );
}

/** How much of the whole a part is, as a bar and in words. */
function Share({ part, whole }: { part: number; whole: number }) {
  const percent = whole > 0 ? (100 * part) / whole : 0;
  return (
    <span class="share">
      <svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
        <rect width={percent} height="4" />
      </svg>
      <span class="num">
        {percent > 0 && percent < 0.5 ? '< 1 %' : format.percent(part, whole)}
      </span>
    </span>
  );
}

function Exact({ block, open }: { block: Part; open: boolean }) {
  const [opened, setOpened] = useState(open);
  return (
    <details open={open} onToggle={(event) => setOpened(event.currentTarget.open)}>
      <summary>
        <span class="exact-kind">{t.kind[block.kind] ?? block.kind}</span>
        {block.name !== '' && <Name of={block.name} code />}
        <span class="note exact-size">
          <Num value={block.tokens} unit="tok" /> · <Num value={block.bytes} unit="B" />
        </span>
      </summary>
      {block.why !== undefined && <p class="note">{block.why}</p>}
      {opened && <Block of={block.text} label={t.kind[block.kind] ?? block.kind} />}
    </details>
  );
}
