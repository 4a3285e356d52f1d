/** One agent, or a new one: read, then handed to the workbench. */

import { useLoad } from '../../lib/load';
import { mayAdmin } from '../../state/me';
import { text } from '../../text';
import { Empty, Waiting } from '../../ui/basics';
import { ProblemPanel } from '../../ui/problem';
import { readAgent, type AgentDetail } from './agent_data';
import { copyOf, freeName } from './copy';
import { allAgents, fromPath, KEPT, slugOf } from './data';
import { Workbench } from './workbench';

/** Why an agent cannot be changed here; `null` = it can. */
function whyReadOnly(scope: string): string | null {
  const why = text.editor.whyReadOnly;
  if (scope === KEPT) return mayAdmin.value ? null : why.scope;
  if (scope === 'home') return why.home;
  if (scope === 'workspace') return why.workspace;
  return why.library;
}

export function AgentPage(props: { scope: string; slug: string; preview: boolean }) {
  const { scope, slug, preview } = props;
  const { data, problem, reload } = useLoad(
    (signal) => readAgent(scope, slug, signal),
    [scope, slug],
  );
  if (!data) return <NotYet problem={problem} reload={reload} />;
  return (
    <Workbench
      key={data.row.updated ?? 0}
      detail={data}
      start={data.text ?? ''}
      readOnly={whyReadOnly(scope)}
      preview={preview}
      reload={reload}
    />
  );
}

/** A new agent, empty or as a copy of another one. */
export function NewAgent({ from, preview }: { from: string | null; preview: boolean }) {
  const { data, problem, reload } = useLoad((signal) => startOf(from, signal), [from]);
  if (!mayAdmin.value) {
    return (
      <div class="view">
        <Empty title={text.editor.newTitle}>
          <p>{text.editor.whyReadOnly.scope}</p>
          <a href="/agents">{text.agents.toList}</a>
        </Empty>
      </div>
    );
  }
  if (data === undefined) return <NotYet problem={problem} reload={reload} />;
  return (
    <Workbench
      detail={null}
      start={data}
      readOnly={null}
      preview={preview}
      reload={reload}
      from={from}
    />
  );
}

async function startOf(from: string | null, signal: AbortSignal): Promise<string> {
  const which = from === null ? null : fromPath(from.split('/'));
  if (which === null) return text.editor.start('');
  const [detail, all] = await Promise.all([
    readAgent(which.scope, which.slug, signal),
    allAgents(signal),
  ]);
  const name = freeName(slugOf(which.slug), new Set(all.map((row) => row.slug)));
  return copyOf(textOf(detail), name);
}

/** The text of an agent; of one whose text is not shown, one that has its prompt. */
function textOf({ text: whole, body, row }: AgentDetail): string {
  if (whole !== undefined) return whole;
  const tools = Object.keys(row.definition?.tools ?? {}).join(', ');
  const fields = `name: ${row.slug}\ndescription: ${JSON.stringify(row.description)}\ntools: [${tools}]\n`;
  return `---\n${fields}visibility: ${row.definition?.visibility ?? 'user-facing'}\n---\n${body ?? ''}`;
}

function NotYet({ problem, reload }: { problem: unknown; reload: () => void }) {
  return (
    <div class="view">
      <h1 class={problem ? undefined : 'sr-only'}>{text.agents.title}</h1>
      {problem ? (
        <ProblemPanel problem={problem} retry={reload}>
          <a class="button small" href="/agents">
            {text.agents.toList}
          </a>
        </ProblemPanel>
      ) : (
        <Waiting>{text.agents.loading}</Waiting>
      )}
    </div>
  );
}
