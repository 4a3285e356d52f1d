/** A new session: who answers, by which model, and the first words. */

import { useEffect, useState } from 'preact/hooks';
import { api, got, type Of } from '../../api/client';
import { Problem } from '../../api/problem';
import { useLoad } from '../../lib/load';
import { go } from '../../router';
import { mayTalk, tenant } from '../../state/me';
import { touchSessions } from '../../state/sessions';
import { text } from '../../text';
import { Empty, Waiting } from '../../ui/basics';
import { Name } from '../../ui/foreign';
import { ProblemPanel } from '../../ui/problem';
import { begin } from './begin';
import { Composer, goOn } from './composer';
import { sessionHref } from './address';

/** The roles of models that every server has. */
const ROLES = ['main', 'fast', 'strong'];

type AgentRow = Of<'AgentSummary'>;

/** Whom this tenant talked to last. */
const last = () => `belljar.agent.${tenant.peek()}`;

const nameOf = (agent: AgentRow) => `${agent.scope}/${agent.slug}`;

async function allAgents(): Promise<AgentRow[]> {
  const all: AgentRow[] = [];
  let after: string | undefined;
  do {
    const query = after === undefined ? {} : { after };
    const page = await got(api.GET('/v1/agents', { params: { query } }));
    all.push(...page.agents);
    after = page.next ?? undefined;
  } while (after !== undefined && all.length < 5_000);
  return all;
}

export function NewSession({ agent: asked }: { agent: string | undefined }) {
  const agents = useLoad(allAgents, []);
  const [agent, setAgent] = useState(asked ?? localStorage.getItem(last()) ?? '');
  const [model, setModel] = useState('');
  const [problem, setProblem] = useState<Problem>();
  const [sending, setSending] = useState(false);
  useEffect(() => {
    if (asked) setAgent(asked);
  }, [asked]);
  const usable = (agents.data ?? []).filter((one) => one.definition?.visibility !== 'internal' || nameOf(one) === agent);
  const chosen = usable.find((one) => nameOf(one) === agent || one.slug === agent) ?? usable.find((one) => one.slug === 'general-purpose') ?? usable[0];
  const blocked = chosen?.definition && chosen.definition.status !== 'ready' ? chosen.definition : undefined;

  const send = async (words: string): Promise<boolean> => {
    if (!chosen) return false;
    setSending(true);
    setProblem(undefined);
    try {
      localStorage.setItem(last(), nameOf(chosen));
      const turn = await begin({ agent: nameOf(chosen), text: words, ...(model.trim() && { model: model.trim() }) });
      touchSessions();
      goOn();
      go(sessionHref(turn.session));
      return true;
    } catch (error) {
      setProblem(Problem.of(error));
      return false;
    } finally {
      setSending(false);
    }
  };

  if (agents.problem && !agents.data) {
    return (
      <div class="view">
        <h1>{text.begin.title}</h1>
        <ProblemPanel problem={agents.problem} retry={agents.reload} />
      </div>
    );
  }
  return (
    <div class="view begin">
      <h1>{text.begin.title}</h1>
      <p class="note">{text.begin.how}</p>
      {!agents.data && <Waiting>{text.frame.loading}</Waiting>}
      {agents.data && usable.length === 0 && (
        <Empty title={text.begin.noAgents}>
          <a href="/agents">{text.chat.agent}</a>
        </Empty>
      )}
      {chosen && (
        <>
          <div class="begin-who">
            <label>
              {text.begin.agent}
              <select value={nameOf(chosen)} onChange={(event) => setAgent(event.currentTarget.value)}>
                {usable.map((one) => (
                  <option key={nameOf(one)} value={nameOf(one)}>
                    {one.slug} · {one.scope}
                  </option>
                ))}
              </select>
            </label>
            <label>
              {text.begin.model}
              <select value={model} onChange={(event) => setModel(event.currentTarget.value)} title={text.begin.modelHow}>
                <option value="">{text.begin.modelOwn}</option>
                {ROLES.map((one) => (
                  <option key={one} value={one}>
                    {one}
                  </option>
                ))}
              </select>
            </label>
          </div>
          {chosen.definition?.description && (
            <p class="begin-about">
              <Name of={chosen.definition.description} most={400} />
            </p>
          )}
          {blocked && (
            <div class={`banner-in${blocked.status === 'blocked' ? ' red' : ''}`}>
              <p>{text.begin.blocked(blocked.status)}</p>
              <ul>
                {blocked.reasons.slice(0, 6).map((why) => (
                  <li key={why}>
                    <Name of={why} />
                  </li>
                ))}
              </ul>
            </div>
          )}
          {chosen.definition?.model_problem && model === '' && (
            <div class="banner-in amber" role="status">
              <p>
                {text.begin.noModel} <Name of={chosen.definition.model_problem} most={400} />.
              </p>
              <p>{text.begin.noModelHow}</p>
            </div>
          )}
          {problem && <ProblemPanel problem={problem} />}
          <Composer send={send} sending={sending} disabled={!mayTalk.value} focus />
        </>
      )}
    </div>
  );
}
