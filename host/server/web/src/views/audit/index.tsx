/** The audit log: who changed what, and what was refused, the newest first. */

import { useEffect, useId, useRef, useState } from 'preact/hooks';
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

/** What a request, and what a call of an agent, was denied. */
const REFUSALS = ['refused', 'call_denied'];

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
  const words = query.get('q') ?? '';
  const [action, actor] = [query.get('action') ?? '', query.get('actor') ?? ''];
  const { lines, problem, busy, ended, older, again } = useLog(action, actor);
  const known = useKnown(lines);
  const change = (changes: Record<string, string | null>) =>
    go(withQuery(changes), { replace: true });
  const isNarrow = [words, action, actor].some((word) => word !== '');
  const shown = lines.filter((line) =>
    fits(words, line.actor, line.action, line.object, JSON.stringify(line.detail)),
  );
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
      {(lines.length > 0 || isNarrow) && (
        <div class="audit-narrow">
          <FilterBox
            label={t.filter}
            hint={t.filterHint}
            value={words}
            onChange={(q) => change({ q })}
            first
          />
          <Pick
            label={t.action}
            any={t.anyAction}
            at={action}
            all={known.actions}
            pick={(action) => change({ action })}
          />
          <Pick
            label={t.actor}
            any={t.anyActor}
            at={actor}
            all={known.actors}
            pick={(actor) => change({ actor })}
          />
        </div>
      )}
      {lines.length === 0 && busy && <Waiting>{t.loading}</Waiting>}
      {lines.length === 0 && ended && !isNarrow && (
        <Empty title={t.none}>
          <p>{t.noneHow}</p>
        </Empty>
      )}
      {(lines.length > 0 || ended) && isNarrow && !found && (
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

/** The lines of this action and actor (empty: of all) that were read so far: the server leaves out
 * the others. */
function useLog(action: string, actor: string) {
  const key = `${action}\n${actor}`;
  const [state, setState] = useState<{
    lines: Line[];
    next: string | null | undefined;
    problem?: Problem;
  }>({ lines: [], next: undefined });
  const [busy, setBusy] = useState(false);
  const running = useRef<AbortController>(undefined);
  const read = (before: string | undefined) => {
    running.current?.abort();
    const abort = new AbortController();
    running.current = abort;
    setBusy(true);
    const query = {
      limit: PAGE,
      ...(before !== undefined && { before }),
      ...(action !== '' && { action }),
      ...(actor !== '' && { actor }),
    };
    got(api.GET('/v1/audit', { params: { query }, signal: abort.signal }))
      .then(
        ({ entries, next }) =>
          !abort.signal.aborted &&
          setState((was) => ({
            lines: before === undefined ? entries : [...was.lines, ...entries],
            next: next ?? null,
          })),
        (error: unknown) =>
          !abort.signal.aborted && setState((was) => ({ ...was, problem: Problem.of(error) })),
      )
      .finally(() => !abort.signal.aborted && setBusy(false));
  };
  const older = () => {
    if (!busy && state.next !== null) read(state.next);
  };
  useEffect(() => {
    setState({ lines: [], next: undefined });
    read(undefined);
    return () => running.current?.abort();
  }, [key]);
  const again = () => {
    setState(({ lines, next }) => ({ lines, next }));
    read(state.next ?? undefined);
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

/** The actions and actors that were seen, whatever is left out now. */
function useKnown(lines: readonly Line[]) {
  const seen = useRef({ actions: new Set<string>(), actors: new Set<string>() });
  for (const line of lines) {
    seen.current.actions.add(line.action);
    seen.current.actors.add(line.actor);
  }
  return { actions: [...seen.current.actions].sort(), actors: [...seen.current.actors].sort() };
}

/** A name to choose among those that were seen, or to type: the server knows more of them. */
function Pick(props: {
  label: string;
  any: string;
  at: string;
  all: string[];
  pick: (one: string | null) => void;
}) {
  const id = useId();
  return (
    <>
      <input
        aria-label={props.label}
        list={id}
        value={props.at}
        placeholder={props.any}
        autocomplete="off"
        spellcheck={false}
        maxLength={200}
        onChange={(event) => props.pick(event.currentTarget.value.trim() || null)}
      />
      <datalist id={id}>
        {props.all.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </>
  );
}

function Row({ line }: { line: Line }) {
  const [open, setOpen] = useState(false);
  const refused = REFUSALS.includes(line.action);
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

/** Of a list of refusals their facts, which are sentences. */
function facts(value: unknown): string | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const all = value.map((one: { facts?: unknown } | null) => one?.facts);
  return all.every((one) => typeof one === 'string') ? all.join('; ') : undefined;
}

/** The detail in a line: `by http, reason no-key`. */
function short(detail: unknown): string {
  if (typeof detail !== 'object' || detail === null) return detail === null ? '' : String(detail);
  return Object.entries(detail)
    .map(([key, value]) => `${key} ${typeof value === 'string' ? value : (facts(value) ?? JSON.stringify(value))}`)
    .join(', ');
}
