/** A session that is open: its conversation, and the glass or a subagent beside it. */

import { signal } from '@preact/signals';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { api, got } from '../../api/client';
import { Problem } from '../../api/problem';
import { line } from '../../lib/foreign';
import { useKeys } from '../../lib/keys';
import { useLoad } from '../../lib/load';
import { useNow } from '../../lib/now';
import { back, go } from '../../router';
import { lookMe, mayTalk } from '../../state/me';
import { OpenSession } from '../../state/open';
import { touchSessions } from '../../state/sessions';
import { text } from '../../text';
import { Empty, Waiting } from '../../ui/basics';
import { Name } from '../../ui/foreign';
import { lazy } from '../../ui/lazy';
import { ProblemPanel } from '../../ui/problem';
import { VirtualList, type ListHandle } from '../../ui/virtual';
import { beside, changesHref, glassHref, sessionHref, type Beside } from './address';
import { begin } from './begin';
import { CallDetail } from './call-detail';
import { Child } from './child';
import { Composer } from './composer';
import { handOn } from './draft';
import { Glass } from './glass';
import { PieceView } from './piece-view';
import { conversation, type Piece } from './pieces';
import { Removal } from './removal';

const Changes = lazy(() => import('./changes'));

const GLASS = 'belljar.glass';

/** Whether the glass is wanted where no address asks for it. */
const glassOn = signal(localStorage.getItem(GLASS) !== 'off');

export function OpenView({ id, rest }: { id: string; rest: readonly string[] }) {
  const open = useMemo(() => new OpenSession(id), [id]);
  useEffect(() => {
    open.start();
    return () => open.close();
  }, [open]);
  const problem = open.problem.value;
  if (problem) return <Lost id={id} problem={problem} />;
  if (rest[0] === 'changes') return <Changes open={open} />;
  return <Conversation open={open} shown={beside(rest)} />;
}

/** A session that cannot be shown. What was typed for it is not lost: it stands in the next one. */
function Lost({ id, problem }: { id: string; problem: Problem }) {
  const gone = problem.status === 404;
  const [draft, setDraft] = useState(false);
  useEffect(() => {
    if (gone) setDraft(handOn(id));
  }, [gone, id]);
  return (
    <div class="view">
      <h1>{gone ? text.chat.deleted : text.frame.broken}</h1>
      <ProblemPanel problem={problem} retry={gone ? undefined : () => location.reload()}>
        {gone && <p>{text.chat.deletedHow}</p>}
        {draft && <p>{text.chat.deletedDraft}</p>}
        <a class="button small" href="/sessions/new">
          {text.nav.new}
        </a>
      </ProblemPanel>
    </div>
  );
}

function Conversation({ open, shown }: { open: OpenSession; shown: Beside }) {
  void open.version.value;
  const wide = useWide();
  const latest = latestMessage(open);
  const aside: Beside = shown.kind !== 'none' ? shown : wide && glassOn.value && latest ? { kind: 'glass', message: latest } : shown;
  const toggle = () => {
    if (shown.kind !== 'none') return go(sessionHref(open.id));
    if (!wide) {
      if (latest) go(glassHref(open.id, latest));
      return;
    }
    glassOn.value = !glassOn.value;
    localStorage.setItem(GLASS, glassOn.value ? 'on' : 'off');
  };
  useKeys([
    { key: 'g', about: text.keys.glass, run: toggle },
    {
      key: 'Escape',
      about: text.keys.back,
      run: () => {
        if (shown.kind === 'none') return false;
        back(sessionHref(open.id));
        return true;
      },
    },
  ]);
  return (
    <div class={`chat${aside.kind === 'none' ? '' : ' with-aside'}`}>
      <section class="talk" aria-label={text.chat.transcript}>
        <Head open={open} toggle={toggle} glass={aside.kind !== 'none'} />
        <Connection open={open} />
        <Transcript open={open} />
        <Foot open={open} />
      </section>
      {aside.kind !== 'none' && (
        <aside class={`beside${shown.kind === 'none' ? '' : ' asked'}`} aria-label={text.glass.title} data-steps="" tabIndex={-1}>
          <Aside open={open} shown={aside} close={toggle} />
        </aside>
      )}
    </div>
  );
}

function Aside({ open, shown, close }: { open: OpenSession; shown: Beside; close: () => void }) {
  switch (shown.kind) {
    case 'glass':
      return <Glass open={open} message={shown.message} close={close} />;
    case 'call':
      return <CallDetail open={open} message={shown.message} agent={shown.agent} step={shown.step} id={shown.id} />;
    case 'agent':
      return <Child key={shown.path} open={open} message={shown.message} path={shown.path} />;
    case 'none':
      return null;
  }
}

/** Whether there is room for three columns. */
function useWide(): boolean {
  const query = useMemo(() => matchMedia('(min-width: 1200px)'), []);
  const [wide, setWide] = useState(query.matches);
  useEffect(() => {
    const look = () => setWide(query.matches);
    query.addEventListener('change', look);
    return () => query.removeEventListener('change', look);
  }, []);
  return wide;
}

function latestMessage(open: OpenSession): string | undefined {
  const told = [...open.fold.turns.keys()].at(-1);
  return told ?? open.messages.findLast((row) => row.role === 'assistant')?.id;
}

function Head({ open, toggle, glass }: { open: OpenSession; toggle: () => void; glass: boolean }) {
  void open.version.value;
  const [removing, setRemoving] = useState(false);
  const about = open.about.value;
  useEffect(() => {
    if (about) document.title = `${line(about.title, 60) || text.sessions.untitled} · ${text.name}`;
  }, [about?.title]);
  const last = [...open.fold.turns.values()].at(-1);
  const model = last?.root.model || about?.model;
  return (
    <header class="talk-head">
      <h1>{about ? <Name of={about.title || text.sessions.untitled} most={160} /> : text.frame.loading}</h1>
      <div class="talk-facts">
        {about && (
          <span class="note" title={about.agent}>
            {text.chat.agent} <Name of={about.agent} code most={80} />
          </span>
        )}
        {model && (
          <span class="note">
            {text.chat.model} <Name of={model} code most={80} />
          </span>
        )}
        <span class="talk-actions">
          <button type="button" class="small" aria-pressed={glass} onClick={toggle}>
            {text.glass.show} <kbd aria-hidden="true">g</kbd>
          </button>
          {mayTalk.value && (
            <button type="button" class="small" onClick={() => setRemoving(true)}>
              {text.chat.remove}
            </button>
          )}
        </span>
      </div>
      {removing && <Removal session={open.id} onClose={() => setRemoving(false)} />}
    </header>
  );
}

/** The state of the connection, in words. */
function Connection({ open }: { open: OpenSession }) {
  const state = open.stream.value;
  const [back, setBack] = useState(false);
  const broke = useRef(false);
  const now = useNow(state.state === 'retry');
  useEffect(() => {
    if (state.state === 'retry') {
      broke.current = true;
      setBack(false);
    } else if (state.state === 'open' && broke.current) {
      broke.current = false;
      setBack(true);
      // It may be another version by now.
      void lookMe();
      const timer = setTimeout(() => setBack(false), 6_000);
      return () => clearTimeout(timer);
    }
    return undefined;
  }, [state.state]);
  return (
    <div class="connection" role="status">
      {state.state === 'retry' && (
        <p class="banner warn">
          {text.frame.offline(Math.max(0, Math.ceil((state.at - now) / 1000)))}
          <button type="button" class="small" onClick={() => open.reconnect()}>
            {text.frame.tryNow}
          </button>
        </p>
      )}
      {back && state.state !== 'retry' && <p class="banner">{text.frame.back}</p>}
    </div>
  );
}

function estimate(piece: Piece): number {
  switch (piece.kind) {
    case 'said':
      return 40 + Math.min(4_000, piece.said.text.length / 3);
    case 'text':
    case 'user':
      return 50 + Math.min(4_000, piece.text.length / 3);
    case 'calls':
      return 30 * Math.min(4, piece.calls.length);
    case 'batch':
      return 60 + 40 * piece.place.children.length;
    case 'end':
      return 20;
    default:
      return 34;
  }
}

function Transcript({ open }: { open: OpenSession }) {
  void open.version.value;
  const list = useRef<ListHandle>(null);
  const pieces = conversation(open.messages, open.fold.turns, {
    said: open.said,
    upto: open.summary?.upto,
    stored: open.subagents,
  });
  const { said } = open;
  // Who says something sees it, wherever they had scrolled to.
  useEffect(() => {
    if (said !== undefined) list.current?.show(pieces.length - 1, 'end');
  }, [said]);
  const ready = open.ready.value || pieces.length > 0;
  if (!ready) return <Waiting>{text.chat.connecting}</Waiting>;
  if (pieces.length === 0) {
    return (
      <Empty title={text.chat.empty}>
        <p>{text.sessions.emptyHow}</p>
      </Empty>
    );
  }
  return (
    <VirtualList
      class="transcript"
      rows={pieces}
      id={(piece) => piece.key}
      label={text.chat.transcript}
      role="log"
      follow
      handle={list}
      estimate={estimate}
      before={
        open.older !== undefined ? (
          <button type="button" class="small older" onClick={() => void open.readOlder()}>
            {text.chat.older}
          </button>
        ) : undefined
      }
      row={(piece) => (
        <div class="piece">
          <PieceView open={open} piece={piece} live={open.status(piece.message) === 'running'} />
        </div>
      )}
    />
  );
}

function Foot({ open }: { open: OpenSession }) {
  void open.version.value;
  const [problem, setProblem] = useState<Problem>();
  const [state, setState] = useState<'no' | 'sending' | 'cancelling'>('no');
  const running = open.running() !== undefined || open.about.value?.running === true;
  const last = latestMessage(open);
  const interrupted = last !== undefined && !running && open.status(last) === 'interrupted';

  const send = async (words: string): Promise<boolean> => {
    setState('sending');
    setProblem(undefined);
    try {
      open.said = words;
      open.version.value += 1;
      await begin({ session: open.id, text: words });
      open.refresh();
      touchSessions();
      return true;
    } catch (error) {
      open.said = undefined;
      open.version.value += 1;
      const problem = Problem.of(error);
      setProblem(problem);
      // It may have been deleted meanwhile.
      if (problem.status === 404) void open.check();
      return false;
    } finally {
      setState('no');
    }
  };
  const act = async (work: () => Promise<unknown>) => {
    setState('cancelling');
    setProblem(undefined);
    try {
      await work();
      open.refresh();
    } catch (error) {
      setProblem(Problem.of(error));
    }
    setState('no');
  };
  const cancel = () => act(() => got(api.POST('/v1/sessions/{id}/cancel', { params: { path: { id: open.id } }, body: {} })));
  return (
    <footer class="talk-foot">
      <ChangesLine open={open} running={running} />
      {problem && <ProblemPanel problem={problem} />}
      <Composer send={send} sending={state === 'sending'} disabled={!mayTalk.value} busy={running} draft={open.id}>
        {interrupted && mayTalk.value && <Resume open={open} act={act} busy={state !== 'no'} />}
        {running && mayTalk.value && (
          <button type="button" class="danger" disabled={state === 'cancelling'} onClick={() => void cancel()}>
            {state === 'cancelling' ? text.chat.cancelling : text.chat.cancel}
          </button>
        )}
      </Composer>
    </footer>
  );
}

function Resume({ open, act, busy }: { open: OpenSession; act: (work: () => Promise<unknown>) => Promise<void>; busy: boolean }) {
  const resume = async () => {
    const answer = await fetch(`/v1/sessions/${encodeURIComponent(open.id)}/resume`, { method: 'POST', credentials: 'same-origin' });
    const said = (await answer.json().catch(() => undefined)) as { resumed?: boolean } | undefined;
    if (!answer.ok) throw Problem.from(answer, said);
    if (said?.resumed === false) throw new Problem('not-resumed', 0, text.chat.notResumed);
  };
  return (
    <button type="button" disabled={busy} onClick={() => void act(resume)}>
      {text.chat.resume}
    </button>
  );
}

/** The end of a turn is told a moment before its files are free. */
async function whenFree<T>(read: () => Promise<T>): Promise<T> {
  for (let left = 8; ; left -= 1) {
    try {
      return await read();
    } catch (error) {
      if (Problem.of(error).status !== 409 || left === 0) throw error;
      await new Promise((done) => setTimeout(done, 400));
    }
  }
}

/** How many files wait for a decision. */
function ChangesLine({ open, running }: { open: OpenSession; running: boolean }) {
  void open.version.value;
  const ready = open.ready.value;
  const changes = useLoad(async () => {
    if (running || !ready) return undefined;
    return whenFree(() => got(api.GET('/v1/sessions/{id}/changes', { params: { path: { id: open.id } } })));
  }, [open.id, running, ready, latestMessage(open)]);
  const files = changes.data?.places.reduce((sum, one) => sum + one.of, 0) ?? 0;
  if (files === 0) return null;
  return (
    <p class="changes-line">
      {text.chat.changes(files)}{' '}
      <a class="button small" href={changesHref(open.id)}>
        {text.chat.review}
      </a>
    </p>
  );
}
