/** Agents: the list, or one of them. What edits an agent is loaded when one is opened. */

import { useEffect, useState } from 'preact/hooks';
import type { ViewProps } from '../../routes';
import { text } from '../../text';
import { Empty, Waiting } from '../../ui/basics';
import { ProblemPanel } from '../../ui/problem';
import { fromPath } from './data';
import { AgentList } from './list';
import '../shared.css';
import './agents.css';

type Pages = typeof import('./agent_page');

export default function Agents({ path, query }: ViewProps) {
  if (path.length === 0) return <AgentList query={query} />;
  return <One path={path} query={query} />;
}

function One({ path, query }: ViewProps) {
  const [pages, setPages] = useState<Pages>();
  const [problem, setProblem] = useState<unknown>();
  const load = () => {
    setProblem(undefined);
    import('./agent_page').then(setPages, setProblem);
  };
  useEffect(load, []);
  const preview = query.get('show') === 'preview';
  const which = fromPath(path);
  const isNew = path.length === 1 && path[0] === 'new';
  if (!isNew && which === null) return <NotThere />;
  if (!pages) {
    return (
      <div class="view">
        {problem ? (
          <ProblemPanel problem={problem} retry={load} />
        ) : (
          <Waiting>{text.agents.loading}</Waiting>
        )}
      </div>
    );
  }
  if (which === null) {
    const from = query.get('from');
    return <pages.NewAgent key={from ?? ''} from={from} preview={preview} />;
  }
  return <pages.AgentPage key={path.join('/')} {...which} preview={preview} />;
}

function NotThere() {
  return (
    <div class="view">
      <Empty title={text.agents.notThere}>
        <p>{text.agents.notThereHow}</p>
        <a href="/agents">{text.agents.toList}</a>
      </Empty>
    </div>
  );
}
