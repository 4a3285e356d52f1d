/** The audit log: who changed what, and what was refused, the newest first. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { api, got, type Of } from '../../api/client';
import { Problem } from '../../api/problem';
import { go, withQuery } from '../../router';
import type { ViewProps } from '../../routes';
import { mayAdmin } from '../../state/me';
import { text } from '../../text';
import { Empty, Waiting, When } from '../../ui/basics';
import { FilterBox, fits } from '../../ui/filter';
import { Block, Name } from '../../ui/foreign';
import { ProblemPanel } from '../../ui/problem';
import '../shared.css';
import './audit.css';

const t = text.audit;

type Line = Of<'AuditLine'>;

/** Lines of a page. */
const PAGE = 100;

export default function Audit({ query }: ViewProps) {
  if (!mayAdmin.value) {
    return (
      <div class="view">
        <Empty title={t.notAdmin}>
          <p>{t.about}</p>
        </Empty>
      </div>
    );
  }
  return <Log query={query} />;
}

function Log({ query }: { query: URLSearchParams }) {
  const { lines, problem, busy, ended, older, again } = useLog();
  const narrowing = {
    words: query.get('q') ?? '',
    action: query.get('action') ?? '',
    actor: query.get('actor') ?? '',
  };
  const change = (changes: Record<string, string | null>) =>
    go(withQuery(changes), { replace: true });
  const isNarrow = Object.values(narrowing).some((word) => word !== '');
  const shown = lines.filter((line) => isWanted(line, narrowing));
  const names = (key: 'action' | 'actor') => [...new Set(lines.map((line) => line[key]))].sort();
  const found = shown.length > 0;
  const [searching, setSearching] = useState(false);
  // Reads on, page by page, until a line fits.
  useEffect(() => {
    if (!searching) return;
    if (found || ended || problem) setSearching(false);
    else if (!busy) older();
  }, [searching, found, ended, busy, problem]);
  return (
    <div class="view audit">
      <header class="view-head">
        <h1>
          {t.title}{' '}
          {lines.length > 0 && <span class="note num">{t.shown(shown.length, lines.length)}</span>}
        </h1>
      </header>
      <p class="note">{t.about}</p>
      {lines.length > 0 && (
        <div class="audit-narrow">
          <FilterBox
            label={t.filter}
            hint={t.filterHint}
            value={narrowing.words}
            onChange={(q) => change({ q })}
            first
          />
          <Pick
            label={t.action}
            any={t.anyAction}
            at={narrowing.action}
            all={names('action')}
            pick={(action) => change({ action })}
          />
          <Pick
            label={t.actor}
            any={t.anyActor}
            at={narrowing.actor}
            all={names('actor')}
            pick={(actor) => change({ actor })}
          />
        </div>
      )}
      {lines.length === 0 && busy && <Waiting>{t.loading}</Waiting>}
      {lines.length === 0 && ended && (
        <Empty title={t.none}>
          <p>{t.noneHow}</p>
        </Empty>
      )}
      {lines.length > 0 && !found && (
        <Empty title={t.noMatch}>
          <div class="audit-ways">
            {!ended && (
              <button type="button" onClick={() => setSearching(!searching)}>
                {searching ? t.stop : t.searchOlder}
              </button>
            )}
            <button type="button" onClick={() => change({ q: null, action: null, actor: null })}>
              {t.clear}
            </button>
          </div>
        </Empty>
      )}
      <ol class="plain audit-lines" data-steps>
        {shown.map((line) => (
          <Row key={line.id} line={line} />
        ))}
      </ol>
      {problem && <ProblemPanel problem={problem} retry={again} />}
      {lines.length > 0 && !problem && (
        <p class="audit-more">
          {ended ? (
            <span class="note">{t.allRead}</span>
          ) : (
            (found || !isNarrow) && (
              <button type="button" disabled={busy} onClick={older}>
                {busy ? t.reading : t.older}
              </button>
            )
          )}
        </p>
      )}
    </div>
  );
}

/** The lines that were read so far. */
function useLog() {
  const [state, setState] = useState<{
    lines: Line[];
    next: string | null | undefined;
    problem?: Problem;
  }>({
    lines: [],
    next: undefined,
  });
  const [busy, setBusy] = useState(false);
  const gone = useRef(false);
  const older = () => {
    if (busy || state.next === null) return;
    setBusy(true);
    const query = { limit: PAGE, ...(state.next === undefined ? {} : { before: state.next }) };
    got(api.GET('/v1/audit', { params: { query } }))
      .then(
        ({ entries, next }) =>
          !gone.current &&
          setState(({ lines }) => ({ lines: [...lines, ...entries], next: next ?? null })),
        (error: unknown) =>
          !gone.current && setState((before) => ({ ...before, problem: Problem.of(error) })),
      )
      .finally(() => !gone.current && setBusy(false));
  };
  useEffect(() => {
    older();
    return () => {
      gone.current = true;
    };
  }, []);
  const again = () => {
    setState(({ lines, next }) => ({ lines, next }));
    older();
  };
  return {
    lines: state.lines,
    problem: state.problem,
    busy,
    ended: state.next === null,
    older,
    again,
  };
}

function isWanted(
  line: Line,
  narrowing: { words: string; action: string; actor: string },
): boolean {
  if (narrowing.action !== '' && line.action !== narrowing.action) return false;
  if (narrowing.actor !== '' && line.actor !== narrowing.actor) return false;
  return fits(narrowing.words, line.actor, line.action, line.object, JSON.stringify(line.detail));
}

function Pick(props: {
  label: string;
  any: string;
  at: string;
  all: string[];
  pick: (one: string) => void;
}) {
  const all =
    props.at === '' || props.all.includes(props.at) ? props.all : [props.at, ...props.all];
  return (
    <select
      aria-label={props.label}
      value={props.at}
      onChange={(event) => props.pick(event.currentTarget.value)}
    >
      <option value="">{props.any}</option>
      {all.map((one) => (
        <option key={one} value={one}>
          {one}
        </option>
      ))}
    </select>
  );
}

function Row({ line }: { line: Line }) {
  const [open, setOpen] = useState(false);
  const refused = line.action === 'refused';
  const detail = short(line.detail);
  return (
    <li class={refused ? 'is-refused' : undefined}>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary data-step>
          <When at={line.at} />
          <span class="audit-action">
            <Name of={line.action} code />
          </span>
          <span class="audit-actor">
            <Name of={line.actor} />
          </span>
          <span class="audit-object">
            <Name of={line.object} most={160} />{' '}
            {detail !== '' && (
              <span class="note">
                <Name of={detail} most={160} />
              </span>
            )}
          </span>
        </summary>
        {open && <Block of={JSON.stringify(line, null, 2)} label={t.details} />}
      </details>
    </li>
  );
}

/** The detail in a line: `by http, reason no-key`. */
function short(detail: unknown): string {
  if (typeof detail !== 'object' || detail === null) return detail === null ? '' : String(detail);
  return Object.entries(detail)
    .map(([key, value]) => `${key} ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ');
}
