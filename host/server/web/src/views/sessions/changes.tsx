/** What a session would change: a diff by file, what would run later first, and the decisions. */

import { useEffect, useMemo, useState } from 'preact/hooks';
import { api, got, type Of } from '../../api/client';
import { Problem } from '../../api/problem';
import { useLoad } from '../../lib/load';
import { modeOf, readPatch, type FilePatch } from '../../lib/patch';
import { mayTalk } from '../../state/me';
import type { OpenSession } from '../../state/open';
import { announce } from '../../state/live';
import { text } from '../../text';
import { Empty, Waiting } from '../../ui/basics';
import { Dialog } from '../../ui/dialog';
import { Diff } from '../../ui/diff';
import { Name } from '../../ui/foreign';
import { ProblemPanel } from '../../ui/problem';
import { sessionHref } from './address';

type Place = Of<'PlaceBody'>;
type Change = Of<'ChangeBody'>;
type Applied = Of<'AppliedBody'>;
type Decision = { kind: 'apply'; body: Of<'ApplyBody'> } | { kind: 'discard'; body: Of<'DiscardBody'> } | { kind: 'undo'; place: string };

/** Files that are drawn before more are asked for. */
const PAGE = 100;

export default function Changes({ open }: { open: OpenSession }) {
  const changes = useLoad(() => got(api.GET('/v1/sessions/{id}/changes', { params: { path: { id: open.id } } })), [open.id]);
  const [working, setWorking] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [done, setDone] = useState<string[]>([]);
  const [sure, setSure] = useState<{ decision: Decision; run: boolean; files: number }>();

  const decide = async (decision: Decision) => {
    setWorking(true);
    setProblem(undefined);
    setSure(undefined);
    try {
      const lines = await carryOut(open.id, decision, changes.data);
      setDone(lines);
      announce(lines.join(' '));
      changes.reload();
    } catch (error) {
      const failed = Problem.of(error);
      const since = failed.kind === 'changed';
      setProblem(since ? new Problem(failed.kind, failed.status, text.changes.since) : failed);
      if (since) changes.reload();
    }
    setWorking(false);
  };
  const ask = (decision: Decision, files: number) => {
    if (decision.kind === 'discard') setSure({ decision, run: false, files });
    else if (decision.kind === 'apply' && decision.body.also_what_runs) setSure({ decision, run: true, files });
    else void decide(decision);
  };
  const places = changes.data?.places ?? [];
  const undoable = changes.data?.undoable ?? [];
  return (
    <div class="view changes" data-steps="">
      <header class="view-head">
        <h1>{text.changes.title}</h1>
        <a class="button small" href={sessionHref(open.id)}>
          ← {text.changes.back}
        </a>
        {mayTalk.value &&
          undoable.map((place) => (
            <button key={place} type="button" class="small" disabled={working} onClick={() => void decide({ kind: 'undo', place })}>
              {undoable.length > 1 ? text.changes.undoAt(place) : text.changes.undo}
            </button>
          ))}
      </header>
      {changes.problem && <ProblemPanel problem={changes.problem} retry={changes.reload} />}
      {problem && <ProblemPanel problem={problem} />}
      {working && <Waiting>{text.changes.working}</Waiting>}
      {done.length > 0 && (
        <div class="banner-in" role="status">
          {done.map((line) => (
            <p key={line}>{line}</p>
          ))}
        </div>
      )}
      {!changes.data && changes.loading && <Waiting>{text.frame.loading}</Waiting>}
      {changes.data && places.length === 0 && (
        <Empty title={text.changes.empty}>
          <p>{text.changes.emptyHow}</p>
        </Empty>
      )}
      {places.map((one) => (
        <PlaceView key={one.path} session={open.id} place={one} working={working} ask={ask} stamp={changes.data} again={changes.reload} />
      ))}
      {sure && <Sure sure={sure} onClose={() => setSure(undefined)} go={() => void decide(sure.decision)} />}
    </div>
  );
}

/** Does what was decided about what was shown; where a turn has changed something since, nothing. */
async function carryOut(id: string, decision: Decision, seen: Of<'SessionChanges'> | undefined): Promise<string[]> {
  const params = { path: { id } };
  const as_of = seen?.as_of ?? null;
  switch (decision.kind) {
    case 'apply':
      return outcome(await got(api.POST('/v1/sessions/{id}/apply', { params, body: { ...decision.body, as_of } })));
    case 'discard': {
      const { discarded } = await got(api.POST('/v1/sessions/{id}/discard', { params, body: { ...decision.body, as_of } }));
      return [text.changes.discarded(discarded.length)];
    }
    case 'undo': {
      const { restored, files } = await got(api.POST('/v1/sessions/{id}/undo', { params, body: { place: decision.place } }));
      return [restored.length ? text.changes.restored(files) : text.changes.nothingUndone];
    }
  }
}

function outcome(applied: Applied): string[] {
  const lines = [text.changes.applied(applied.files)];
  if (applied.merged.length) lines.push(text.changes.merged(applied.merged.length));
  if (applied.held_back.length) lines.push(text.changes.held(applied.held_back.length));
  if (applied.conflicts.length) lines.push(text.changes.left(applied.conflicts.length));
  return lines;
}

function Sure({ sure, onClose, go }: { sure: { run: boolean; files: number }; onClose: () => void; go: () => void }) {
  return (
    <Dialog
      title={sure.run ? text.changes.sureRun : text.changes.sureDiscard}
      onClose={onClose}
      actions={
        <>
          <button type="button" onClick={onClose}>
            {text.actions.cancel}
          </button>
          <button type="button" class="danger" onClick={go}>
            {sure.run ? text.changes.apply : text.changes.discard}
          </button>
        </>
      }
    >
      <p>{sure.run ? text.changes.sureRunText : text.changes.sureDiscardText(sure.files)}</p>
    </Dialog>
  );
}

/** What would run later stands first, then what conflicts. */
function rank(file: Change): number {
  return file.runs_later ? 0 : file.conflict ? 1 : 2;
}

/** The changes of a place: those of the first answer, and the rest once it was asked for. */
function useListed(session: string, place: Place, asOf: number | undefined, again: () => void) {
  const [rest, setRest] = useState<Change[]>([]);
  const [listing, setListing] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => setRest([]), [place]);
  const files = useMemo(() => [...place.files, ...rest].sort((a, b) => rank(a) - rank(b) || (a.path < b.path ? -1 : 1)), [place.files, rest]);
  const list = async () => {
    setListing(true);
    setProblem(undefined);
    try {
      const all = [...rest];
      while (place.files.length + all.length < place.entries) {
        const query = { skip: place.files.length + all.length };
        const answer = await got(api.GET('/v1/sessions/{id}/changes', { params: { path: { id: session }, query } }));
        const next = answer.places.find((one) => one.path === place.path);
        // Something was changed meanwhile: the parts would not be of one list.
        if (answer.as_of !== asOf || next?.entries !== place.entries || next.files.length === 0) {
          again();
          break;
        }
        all.push(...next.files);
      }
      setRest(all);
    } catch (error) {
      setProblem(Problem.of(error));
    }
    setListing(false);
  };
  return { files, whole: files.length >= place.entries, listing, problem, list };
}

function PlaceView(props: {
  session: string;
  place: Place;
  working: boolean;
  ask: (decision: Decision, files: number) => void;
  stamp: Of<'SessionChanges'> | undefined;
  again: () => void;
}) {
  const { session, place, working, ask, stamp, again } = props;
  const [most, setMost] = useState(PAGE);
  const { files, whole, listing, problem, list } = useListed(session, place, stamp?.as_of, again);
  const patch = useLoad(
    () => got(api.GET('/v1/sessions/{id}/changes', { params: { path: { id: session }, query: { patch: true } } })),
    [session, stamp],
  );
  const of = patch.data?.places.find((one) => one.path === place.path);
  const patches = useMemo(() => new Map((of ? patchesOf(of) : []).map((one) => [one.path, one])), [of]);
  const own = { place: place.path, entries: place.entries };
  return (
    <section class="place" aria-label={text.changes.place(place.path)}>
      <header class="place-head">
        <h2>
          <Name of={place.path} code />
        </h2>
        <span class="note num">{text.changes.of(place.of, place.added, place.removed)}</span>
        {mayTalk.value && (
          <span class="talk-actions">
            <button type="button" class="primary" disabled={working || !whole} title={whole ? text.changes.applyAllNote : text.changes.unlisted} onClick={() => ask({ kind: 'apply', body: own }, place.of)}>
              {text.changes.applyAll}
            </button>
            <button type="button" class="danger" disabled={working || !whole} title={whole ? undefined : text.changes.unlisted} onClick={() => ask({ kind: 'discard', body: own }, place.of)}>
              {text.changes.discardAll}
            </button>
          </span>
        )}
      </header>
      {!whole && (
        <div class="banner-in amber" role="status">
          <p>{text.changes.cut(files.length, place.entries)}</p>
          <button type="button" class="small" disabled={listing} onClick={() => void list()}>
            {listing ? text.frame.loading : text.changes.listRest}
          </button>
        </div>
      )}
      {problem && <ProblemPanel problem={problem} />}
      {place.run_later > 0 && <p class="banner-in red">{text.changes.runsLaterHead(place.run_later)}</p>}
      {place.conflicts > 0 && <p class="banner-in amber">{text.changes.conflictsHead(place.conflicts)}</p>}
      <ul class="plain changed" aria-label={text.changes.list}>
        {files.slice(0, most).map((file) => (
          <FileView
            key={file.path}
            session={session}
            place={place.path}
            file={file}
            known={patches.get(file.path)}
            waiting={patch.loading && !patch.data}
            working={working || (file.directory && !whole)}
            below={file.directory ? files.filter((one) => one.path === file.path || one.path.startsWith(`${file.path}/`)).length : undefined}
            ask={ask}
          />
        ))}
      </ul>
      {files.length > most && (
        <button type="button" onClick={() => setMost(most + PAGE)}>
          {text.actions.more}
        </button>
      )}
    </section>
  );
}

function FileView(props: {
  session: string;
  place: string;
  file: Change;
  known: FilePatch | undefined;
  waiting: boolean;
  working: boolean;
  /** Of a directory: how many changes it and all in it are. */
  below: number | undefined;
  ask: (decision: Decision, files: number) => void;
}) {
  const { session, place, file, known, waiting, working, below, ask } = props;
  const [viewed, setViewed] = useState(false);
  const [shown, setShown] = useState((file.added + file.removed < 400 || file.runs_later !== undefined) && !file.directory);
  const own = { place, paths: [file.path], ...(below !== undefined && { entries: below }) };
  return (
    <li class={`change${file.runs_later ? ' runs' : ''}${file.conflict ? ' conflicts' : ''}`} data-path={file.path}>
      <div class="change-head">
        <button type="button" class="change-name" aria-expanded={shown} data-step="" onClick={() => setShown(!shown)}>
          {shown ? '▾' : '▸'} <span class={`kind is-${file.kind}`}>{text.changes.kinds[file.kind] ?? file.kind}</span>{' '}
          <Name of={file.path} code most={200} />
          {file.directory && <span class="note">{text.changes.directory}</span>}
          {file.from && (
            <span class="note">
              <Name of={text.changes.from(file.from)} most={200} />
            </span>
          )}
        </button>
        <span class="note num">
          <span class="plus">+{file.added}</span> <span class="minus">−{file.removed}</span>
        </span>
        <label class="inline note">
          <input
            type="checkbox"
            checked={viewed}
            onChange={(event) => {
              setViewed(event.currentTarget.checked);
              if (event.currentTarget.checked) setShown(false);
            }}
          />
          {text.changes.viewed}
        </label>
        {mayTalk.value && (
          <span class="talk-actions">
            {file.conflict ? (
              <>
                <button type="button" class="small" disabled={working} onClick={() => ask({ kind: 'apply', body: { ...own, mine: [file.path] } }, 1)}>
                  {text.changes.mine}
                </button>
                <button
                  type="button"
                  class="small"
                  disabled={working}
                  onClick={() => ask({ kind: 'apply', body: { ...own, theirs: [file.path], also_what_runs: file.runs_later != null } }, 1)}
                >
                  {text.changes.theirs}
                </button>
              </>
            ) : (
              <button
                type="button"
                class="small"
                disabled={working}
                onClick={() => ask({ kind: 'apply', body: { ...own, ...(file.runs_later && { also_what_runs: true }) } }, 1)}
              >
                {file.runs_later ? text.changes.applyRunning : text.changes.apply}
              </button>
            )}
            <button type="button" class="small danger" disabled={working} onClick={() => ask({ kind: 'discard', body: own }, 1)}>
              {text.changes.discard}
            </button>
          </span>
        )}
      </div>
      {file.runs_later && (
        <p class="refusal">
          <span>
            {text.changes.runsLater}: {file.runs_later}
          </span>
        </p>
      )}
      {file.conflict && (
        <p class="change-why">
          {text.changes.conflict}: <Name of={file.conflict} most={600} />
        </p>
      )}
      {file.merges && <p class="note">{text.changes.merges}</p>}
      {shown && <FileDiff session={session} file={file} known={known} waiting={waiting} />}
    </li>
  );
}

/** The files of a place's patches: of what `git apply` takes, and of what lies below `.git`. */
function patchesOf(place: Place): FilePatch[] {
  return [...readPatch(place.patch ?? ''), ...readPatch(place.git_patch ?? '')];
}

/** The lines of one file: of the whole patch, or read alone where that is too large. */
function FileDiff({ session, file, known, waiting }: { session: string; file: Change; known: FilePatch | undefined; waiting: boolean }) {
  const alone = useLoad(async () => {
    if (known || waiting) return undefined;
    const query = { path: file.path, patch: true };
    const answer = await got(api.GET('/v1/sessions/{id}/changes', { params: { path: { id: session }, query } }));
    const all = answer.places.flatMap(patchesOf);
    return all.find((one) => one.path === file.path) ?? all[0];
  }, [file.path, known, waiting]);
  const patch = known ?? alone.data;
  // It stands beside its file. The list says what keeps all of them from being read, and asks anew.
  if (alone.problem) return <ProblemPanel problem={alone.problem} retry={alone.reload} quiet />;
  if (!patch && (waiting || alone.loading)) return <Waiting>{text.frame.loading}</Waiting>;
  const mode = patch && modeOf(patch);
  return (
    <>
      {mode && (
        <p class="change-why">
          {text.changes.mode(mode.before)} <code>{mode.after}</code> {text.changes.modes[mode.after ?? '']}
        </p>
      )}
      <FileLines file={file} patch={patch} />
    </>
  );
}

function FileLines({ file, patch }: { file: Change; patch: FilePatch | undefined }) {
  if (patch && patch.hunks.length > 0) return <Diff hunks={patch.hunks} label={text.changes.diff(file.path.slice(0, 200))} />;
  return <p class="note pad">{file.binary ? text.changes.binary : file.added + file.removed > 0 ? text.changes.unpatched : text.changes.none}</p>;
}
