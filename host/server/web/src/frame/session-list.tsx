/** The sessions at the side: search, kind, running, waiting. */

import { useEffect } from 'preact/hooks';
import { place } from '../router';
import { listed, more, moreSessions, narrow, narrowed, sessions, sessionsProblem, watchSessions, type SessionRow } from '../state/sessions';
import { questions } from '../state/questions';
import { text } from '../text';
import { Empty, Waiting, When } from '../ui/basics';
import { Name } from '../ui/foreign';
import { ProblemPanel } from '../ui/problem';
import { Status } from '../ui/status';

export function SessionList() {
  useEffect(watchSessions, []);
  const asked = new Set(questions.value.map((one) => one.session));
  const { q, which } = narrowed.value;
  const waiting = (row: SessionRow) => asked.has(row.id);
  const rows = sessions.value.filter((row) => which !== 'waiting' || waiting(row));
  return (
    <div class="sessions">
      <Narrow />
      <div class="session-rows" data-steps="" tabIndex={-1} role="region" aria-label={text.sessions.label}>
        {sessionsProblem.value && <ProblemPanel problem={sessionsProblem.value} />}
        <ul class="plain">
          {rows.map((row) => (
            <Row key={row.id} row={row} waiting={waiting(row)} />
          ))}
        </ul>
        {rows.length === 0 && !listed.value && !sessionsProblem.value && <Waiting>{text.frame.loading}</Waiting>}
        {rows.length === 0 && listed.value && (
          <Empty title={q || which !== 'all' ? text.sessions.noMatch : text.sessions.empty}>
            <p>{q || which !== 'all' ? text.sessions.noMatchHow : text.sessions.emptyHow}</p>
          </Empty>
        )}
        {more.value !== undefined && (
          <button type="button" class="small" onClick={() => void moreSessions()}>
            {text.sessions.more}
          </button>
        )}
      </div>
    </div>
  );
}

function Narrow() {
  const { q, kind, which } = narrowed.value;
  const count = { all: 0, running: sessions.value.filter((row) => row.running).length, waiting: new Set(questions.value.map((one) => one.session)).size };
  return (
    <div class="narrow" role="search">
      <input
        type="search"
        data-search=""
        value={q}
        placeholder={text.sessions.search}
        aria-label={text.sessions.search}
        onInput={(event) => narrow({ q: event.currentTarget.value })}
      />
      <div class="narrow-row">
        <div class="chips" role="group" aria-label={text.sessions.filter}>
          {(['all', 'running', 'waiting'] as const).map((one) => (
            <button key={one} type="button" class="chip" aria-pressed={which === one} onClick={() => narrow({ which: one })}>
              {text.sessions[one]}
              {count[one] > 0 && <span class={`chip-count${one === 'waiting' ? ' amber' : ''}`}>{count[one]}</span>}
            </button>
          ))}
        </div>
        <select value={kind} aria-label={text.sessions.kind} onChange={(event) => narrow({ kind: event.currentTarget.value })}>
          {Object.entries(text.sessions.kinds).map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
        </select>
      </div>
    </div>
  );
}

function Row({ row, waiting }: { row: SessionRow; waiting: boolean }) {
  const current = place.value.path[0] === 'sessions' && place.value.path[1] === row.id;
  const agent = row.agent.slice(row.agent.lastIndexOf('/') + 1);
  return (
    <li>
      <a class="session-row" href={`/sessions/${encodeURIComponent(row.id)}`} aria-current={current ? 'page' : undefined} data-step="">
        <span class="session-title">{row.title.trim() ? <Name of={row.title} most={120} /> : text.sessions.untitled}</span>
        <span class="session-facts">
          {waiting ? (
            <Status state="waiting" word={text.sessions.waiting} />
          ) : row.running ? (
            <Status state="running" />
          ) : (
            <Name of={agent} most={40} />
          )}
          <When at={row.updated} as="ago" />
        </span>
      </a>
    </li>
  );
}
