/** The transcript of a subagent, in the place of the glass: its task, context, rights, calls,
 * findings and own children. Only to be read. */

import { useState } from 'preact/hooks';
import { api, got } from '../../api/client';
import { useLoad } from '../../lib/load';
import { cardRow, shortName, type SubagentRow } from '../../state/card';
import type { OpenSession } from '../../state/open';
import { text } from '../../text';
import { Empty, Num, Waiting, When } from '../../ui/basics';
import { Block, Name } from '../../ui/foreign';
import { Markdown } from '../../ui/markdown';
import { ProblemPanel } from '../../ui/problem';
import { QuestionBox } from '../../ui/question';
import { Status } from '../../ui/status';
import { agentHref, glassHref } from './address';
import { Listed } from './listed';
import { Timeline } from './glass';
import { PieceView } from './piece-view';
import { agentPieces } from './pieces';
import { millis } from '../../lib/format';

/** Pieces that are drawn before more are asked for. */
const PAGE = 200;

export function Child({ open, message, path }: { open: OpenSession; message: string; path: string }) {
  void open.version.value;
  const [most, setMost] = useState(PAGE);
  const turn = open.turn(message);
  const stored = open.subagents.get(message);
  const row = stored?.get(path);
  const agent = turn?.agents.get(path);
  if (!agent && !row) {
    if (!open.ready.value) return <Waiting>{text.frame.loading}</Waiting>;
    return (
      <Empty title={text.child.gone}>
        <p>{text.child.goneHow}</p>
        <a href={glassHref(open.id, message)}>{text.child.back}</a>
      </Empty>
    );
  }
  const parent = agent?.parent ?? path.slice(0, Math.max(0, path.lastIndexOf('/')));
  const top = !turn || parent === turn.root.path || parent === '';
  const about = turn ? cardRow(turn, path, stored ?? new Map()) : undefined;
  const live = open.status(message) === 'running';
  const pieces = turn && agent ? agentPieces(message, agent) : [];
  const result = row?.result as Result | undefined;
  const spoke = pieces.some((piece) => piece.kind === 'said');
  const first = Math.max(0, pieces.length - most);
  return (
    <div class="detail child">
      <header class="glass-head">
        <a class="button small" href={top ? glassHref(open.id, message) : agentHref(open.id, message, parent)}>
          ← {top ? text.child.back : text.child.backTo(shortName(parent).slice(0, 40))}
        </a>
      </header>
      <div class="detail-body">
        <h2 data-step="" tabIndex={-1}>
          <Name of={shortName(path)} most={80} /> <Status state={about?.state ?? (row?.status as 'completed')} />
        </h2>
        <p class="child-facts note num">
          {about && about.step > 0 && <span>{text.card.step(about.step)}</span>}
          {about?.tokens !== undefined && <Num value={about.tokens} unit="tok" />}
          {about && about.fuel > 0 && <Num value={about.fuel} unit="fuel" />}
          {about?.started !== undefined && about.ended !== undefined && <span>{millis(about.ended - about.started)}</span>}
          {about?.ended !== undefined && <When at={about.ended} />}
        </p>
        {about?.error && about.state !== 'completed' && (
          <p class={`card-error is-${about.state}`}>
            <Name of={about.error} most={1_000} />
          </p>
        )}
        <section>
          <h3>{text.child.task}</h3>
          <Block of={row?.goal ?? agent?.task ?? ''} label={text.child.task} />
        </section>
        {row?.context && (
          <section>
            <h3>{text.child.context}</h3>
            <Block of={row.context} label={text.child.context} />
          </section>
        )}
        {row && <Rights row={row} />}
        {turn && agent && agent.steps.length > 0 && (
          <details>
            <summary>{text.glass.timeline}</summary>
            <div class="child-timeline">
              <Timeline open={open} turn={turn} live={live} root={path} />
            </div>
          </details>
        )}
        <section class="child-transcript" data-steps="">
          <h3>{text.child.transcript}</h3>
          {first > 0 && (
            <button type="button" class="small" onClick={() => setMost(most + PAGE)}>
              {text.actions.more}
            </button>
          )}
          {pieces.slice(first).map((piece) => (
            <PieceView key={piece.key} open={open} piece={piece} live={live} linked={false} />
          ))}
          {!spoke && result?.output && <Markdown of={result.output} />}
          {turn && [...turn.questions.values()].filter((asked) => asked.agent === path).map((asked) => <QuestionBox key={asked.id} session={open.id} asked={asked} />)}
        </section>
        {result?.findings?.kind === 'valid' && (
          <section>
            <h3>{text.child.findings}</h3>
            <Block of={JSON.stringify(result.findings.findings, null, 2)} label={text.child.findings} />
          </section>
        )}
        {result && (
          <dl class="facts wide">
            <dt>{text.child.read}</dt>
            <dd>
              <Listed of={result.paths_read ?? []} />
            </dd>
            <dt>{text.child.written}</dt>
            <dd>
              <Listed of={result.paths_written ?? []} />
            </dd>
            {(result.warnings?.length ?? 0) > 0 && (
              <>
                <dt>{text.child.warnings}</dt>
                <dd>
                  <ul class="plain">
                    {result.warnings?.slice(0, 50).map((one, at) => (
                      <li key={at}>
                        <Name of={one} most={600} />
                      </li>
                    ))}
                  </ul>
                </dd>
              </>
            )}
          </dl>
        )}
      </div>
    </div>
  );
}

/** The parts of a stored result that are shown. */
interface Result {
  output?: string;
  findings?: { kind: string; findings?: unknown } | null;
  paths_read?: string[];
  paths_written?: string[];
  warnings?: string[];
}

function Rights({ row }: { row: SubagentRow }) {
  const grants = useLoad(() => got(api.GET('/v1/grants', { params: { query: { agent: row.agent } } })), [row.agent]);
  const rights = grants.data;
  return (
    <details>
      <summary>
        {text.child.rights} · <Name of={row.agent} code most={80} />
      </summary>
      {grants.problem && <ProblemPanel problem={grants.problem} />}
      {rights && (
        <>
          <p class="note">{text.child.rightsNow}</p>
          <dl class="facts wide">
            <dt>{text.child.tools}</dt>
            <dd>
              <Listed of={Object.entries(rights.tools).map(([tool, how]) => `${tool}: ${how}`)} />
            </dd>
            <dt>{text.glass.files}</dt>
            <dd>
              <Listed of={Object.entries(rights.mounts).map(([path, access]) => `${path}: ${access}`)} />
            </dd>
            <dt>{text.glass.hosts}</dt>
            <dd>
              <Listed of={rights.hosts.flatMap((list) => list.rules)} />
            </dd>
            <dt>{text.glass.secrets}</dt>
            <dd>
              <Listed of={rights.secrets} />
            </dd>
          </dl>
        </>
      )}
      <p class="note">
        {text.child.model} <Name of={row.model || '–'} code most={80} /> · {text.child.source} {row.source}
      </p>
    </details>
  );
}
