/** The turns that run now, of this tenant or of all, and ending them. */

import { useEffect, useState } from 'preact/hooks';
import { api, got, type Of } from '../../api/client';
import { Problem } from '../../api/problem';
import * as format from '../../lib/format';
import { useLoad } from '../../lib/load';
import { go, to, withQuery } from '../../router';
import type { ViewProps } from '../../routes';
import { me, mayTalk } from '../../state/me';
import { text } from '../../text';
import { Empty, Waiting, When } from '../../ui/basics';
import { Dialog } from '../../ui/dialog';
import { Name } from '../../ui/foreign';
import { ProblemPanel } from '../../ui/problem';
import { Status } from '../../ui/status';
import '../shared.css';
import './running.css';

const t = text.running;

/** Milliseconds between two looks. */
const PAUSE = 2_000;

type Turn = Of<'RunningBody'>;

export default function Running({ query }: ViewProps) {
  const own = me.value.state === 'in' ? me.value.me : undefined;
  const isOperator = own?.operator === true;
  const all = isOperator && query.get('all') === 'true';
  const { data, problem, reload, loading } = useLoad(
    (signal) => got(api.GET('/v1/running', { params: { query: all ? { all } : {} }, signal })),
    [all],
  );
  const now = useNow(PAUSE, reload, loading);
  const [ending, setEnding] = useState<Turn>();
  const turns = data?.turns ?? [];
  return (
    <div class="view running">
      <header class="view-head">
        <h1>
          {t.title}{' '}
          {turns.length > 0 && (
            <span class="note" role="status">
              {t.count(turns.length)}
            </span>
          )}
        </h1>
        {isOperator && (
          <div class="picks" role="group" aria-label={t.scope}>
            <button
              type="button"
              class="small"
              aria-pressed={!all}
              onClick={() => go(withQuery({ all: null }), { replace: true })}
            >
              {t.mine}
            </button>
            <button
              type="button"
              class="small"
              aria-pressed={all}
              onClick={() => go(withQuery({ all: 'true' }), { replace: true })}
            >
              {t.everybody}
            </button>
          </div>
        )}
      </header>
      {problem && (
        <ProblemPanel problem={problem} retry={reload}>
          {data && <p class="note">{t.stale}</p>}
        </ProblemPanel>
      )}
      {!data && !problem && <Waiting>{t.loading}</Waiting>}
      {data && turns.length === 0 && (
        <Empty title={t.none}>
          <p>{t.noneHow}</p>
          <a href="/sessions">{t.noneStart}</a>
        </Empty>
      )}
      <ul class="plain turns" data-steps>
        {turns.map((turn) => (
          <Row
            key={`${turn.tenant ?? ''}/${turn.message}`}
            turn={turn}
            now={now}
            isOwn={turn.tenant === own?.tenant}
            end={() => setEnding(turn)}
          />
        ))}
      </ul>
      {all && turns.some((turn) => turn.tenant !== own?.tenant) && <p class="note">{t.others}</p>}
      {ending && (
        <End
          turn={ending}
          onClose={() => {
            setEnding(undefined);
            reload();
          }}
        />
      )}
    </div>
  );
}

/** The time now, and another look at the server, as long as the page is seen. */
function useNow(pause: number, look: () => void, busy: boolean): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.hidden) return;
      setNow(Date.now());
      if (!busy) look();
    }, pause);
    return () => clearInterval(timer);
  }, [pause, look, busy]);
  return now;
}

function Row({
  turn,
  now,
  isOwn,
  end,
}: {
  turn: Turn;
  now: number;
  isOwn: boolean;
  end: () => void;
}) {
  return (
    <li class="turn">
      <Status state="running" quiet />
      <span class="turn-what">
        {isOwn ? (
          <a href={to('sessions', turn.session)} data-step>
            <Name of={turn.title || turn.session} />
          </a>
        ) : (
          <span tabIndex={0} data-step>
            <Name of={turn.title || turn.session} />
          </span>
        )}
        <span class="note">
          <Name of={turn.agent} />
          {!isOwn && (
            <>
              {' · '}
              <Name of={turn.tenant} />
            </>
          )}
        </span>
      </span>
      <span class="turn-time">
        <span class="num">{format.running(now - turn.started)}</span>
        <span class="note">
          {t.since} <When at={turn.started} />
        </span>
      </span>
      {isOwn && mayTalk.value && (
        <button type="button" class="small" onClick={end}>
          {t.cancel}
        </button>
      )}
    </li>
  );
}

function End({ turn, onClose }: { turn: Turn; onClose: () => void }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [gone, setGone] = useState(false);
  const end = async () => {
    setBusy(true);
    try {
      const path = { id: turn.session };
      const { cancelled } = await got(
        api.POST('/v1/sessions/{id}/cancel', { params: { path }, body: {} }),
      );
      if (cancelled) onClose();
      else setGone(true);
    } catch (error) {
      setProblem(Problem.of(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={t.cancelTitle(turn.agent)}
      onClose={onClose}
      actions={
        <>
          <button type="button" onClick={onClose}>
            {gone ? text.actions.close : t.keep}
          </button>
          {!gone && (
            <button type="button" class="danger" disabled={busy} onClick={() => void end()}>
              {busy ? t.cancelling : t.cancel}
            </button>
          )}
        </>
      }
    >
      <p role="status">{gone ? t.gone : t.cancelWhat}</p>
      {problem && <ProblemPanel problem={problem} />}
    </Dialog>
  );
}
