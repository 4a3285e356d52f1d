/** The form and the text of an agent side by side, what the server says of it, and what can be done
 * with it. The text is the one source of truth. */

import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Problem } from '../../api/problem';
import { useKeys } from '../../lib/keys';
import { back, go, guardLeaving, to, withQuery } from '../../router';
import { mayAdmin, mayTalk } from '../../state/me';
import { text } from '../../text';
import { Name } from '../../ui/foreign';
import { ProblemPanel } from '../../ui/problem';
import { create, readAgent, replace, type AgentDetail } from './agent_data';
import { CodeBox, type CodeHandle } from './code_box';
import { hrefOf, KEPT, slugOf, standingOf } from './data';
import { DeleteAgent } from './delete_agent';
import { Findings } from './findings';
import { AgentForm } from './form';
import { FormText, type Path, type Value } from './form_text';
import { Why } from './list';
import { Preview } from './preview';
import { Standing } from './standing';
import { useChecked } from './use_checked';

export function Workbench(props: {
  /** `null`: it is new. */
  detail: AgentDetail | null;
  /** The text to begin with. */
  start: string;
  /** Why it cannot be changed; `null` = it can. */
  readOnly: string | null;
  preview: boolean;
  reload: () => void;
  /** A new one: the agent that it is a copy of. */
  from?: string | null;
}) {
  const { detail, readOnly, preview } = props;
  const [content, setContent] = useState(props.start);
  const [saved, setSaved] = useState(props.start);
  const [updated, setUpdated] = useState(detail?.row.updated);
  const [saving, setSaving] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const [deleting, setDeleting] = useState(false);
  const code = useRef<CodeHandle>(null);
  // What is typed may come faster than it is drawn: each change starts from the last one.
  const latest = useRef(content);
  const [revision, setRevision] = useState(0);
  const type = (next: string) => {
    latest.current = next;
    setContent(next);
  };
  const put = (path: Path, value: Value) => {
    const now = FormText.of(latest.current);
    if (!(now instanceof FormText)) return;
    type(now.with(path, value));
    setRevision((n) => n + 1);
  };
  const form = FormText.of(content);
  const written = form instanceof FormText ? form.scalar(['name']) : null;
  const slug = detail?.row.slug ?? slugOf(String(written ?? ''));
  const hasText = detail === null || detail.text !== undefined;
  const dirty = content !== saved;
  const checked = useChecked(slug, content, hasText && mayTalk.value && (dirty || detail !== null));
  useUnsaved(dirty && readOnly === null);
  useKeys([
    { key: 'Escape', about: text.keys.back, run: () => (preview ? show(false) : back('/agents')) },
  ]);

  const show = (preview: boolean) => go(withQuery({ show: preview ? 'preview' : null }));
  const save = async (over?: number) => {
    setSaving(true);
    setProblem(undefined);
    try {
      const kept =
        detail === null
          ? await create(slug, content)
          : await replace(slug, content, over ?? updated ?? 0);
      setSaved(content);
      setUpdated(kept.updated ?? undefined);
      if (detail === null) {
        leaveUnasked();
        go(hrefOf({ scope: KEPT, slug }), { replace: true });
      }
    } catch (error) {
      const failed = Problem.of(error);
      // Its hint is for programs; the ways on stand below it.
      setProblem(
        failed.kind === 'changed' ? new Problem(failed.kind, failed.status, failed.detail) : failed,
      );
    } finally {
      setSaving(false);
    }
  };
  const standing = checked.result
    ? standingOf(checked.result.definition?.status)
    : detail?.row.standing;
  return (
    <div class="view workbench">
      <Head
        title={
          detail ? (
            <Name of={detail.row.slug} />
          ) : props.from ? (
            text.editor.copyOf(props.from)
          ) : (
            text.editor.newTitle
          )
        }
        scope={detail?.row.scope}
        state={
          <>
            {standing && <Standing of={standing} />}
            {readOnly !== null && <span class="tag">{text.editor.readOnly}</span>}
            <span class="note" role="status">
              {readOnly === null &&
                (saving
                  ? text.editor.saving
                  : dirty
                    ? text.editor.unsaved
                    : updated !== undefined && text.editor.saved)}
            </span>
          </>
        }
      >
        <button type="button" aria-pressed={preview} onClick={() => show(!preview)}>
          {text.editor.preview}
        </button>
        {readOnly === null && (
          <button
            type="button"
            class="primary"
            disabled={saving || slug === '' || (!dirty && detail !== null)}
            onClick={() => void save()}
          >
            {text.editor.save}
          </button>
        )}
        {detail && mayTalk.value && !dirty && (
          <a class="button" href={`/sessions/new?agent=${encodeURIComponent(`${detail.row.scope}/${detail.row.slug}`)}`}>
            {text.editor.talk}
          </a>
        )}
        {detail && mayAdmin.value && (
          <a
            class="button"
            href={`${to('agents', 'new')}?from=${encodeURIComponent(`${detail.row.scope}/${detail.row.slug}`)}`}
          >
            {text.editor.duplicate}
          </a>
        )}
        {detail && readOnly === null && (
          <button type="button" class="danger" onClick={() => setDeleting(true)}>
            {text.editor.delete}
          </button>
        )}
      </Head>
      {readOnly !== null && <p class="read-only">{readOnly}</p>}
      {problem && (
        <ProblemPanel problem={problem}>
          {problem.kind === 'changed' && detail && (
            <Changed
              scope={detail.row.scope}
              slug={slug}
              reload={props.reload}
              over={(version) => void save(version)}
            />
          )}
        </ProblemPanel>
      )}
      {detail && (detail.row.command || detail.row.standing === 'blocked') && !dirty && (
        <Why row={detail.row} />
      )}
      {preview ? (
        <Preview
          name={detail?.row.name}
          edited={dirty || detail === null ? { slug, text: content } : undefined}
        />
      ) : (
        <div class={`panes${hasText ? '' : ' no-text'}`}>
          <AgentForm
            form={form}
            content={content}
            put={put}
            disabled={readOnly !== null}
            isNew={detail === null}
            self={slug}
            show={(line) => code.current?.show(line, 1)}
          />
          <CodeBox
            value={content}
            revision={revision}
            onChange={type}
            readOnly={readOnly !== null}
            diagnostics={checked.result?.diagnostics ?? []}
            handle={code}
            prompt={hasText ? undefined : detail?.body}
          />
          <Findings
            checked={checked}
            given={checked.result?.definition ?? (hasText ? undefined : detail?.row.definition)}
            allowed={mayTalk.value}
            hint={detail === null && !dirty ? text.editor.newHint : undefined}
            isShown={hasText}
            show={(line, column) => code.current?.show(line, column)}
          />
        </div>
      )}
      {deleting && detail && (
        <DeleteAgent name={detail.row.slug} onClose={() => setDeleting(false)} />
      )}
    </div>
  );
}

function Head(props: {
  title: ComponentChildren;
  scope: string | undefined;
  state: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <header class="view-head workbench-head">
      <div class="workbench-title">
        <p class="note">
          <a href="/agents">{text.agents.title}</a>
          {props.scope !== undefined && (
            <>
              {' / '}
              <Name of={props.scope} />
            </>
          )}
        </p>
        <h1>{props.title}</h1>
        <p class="workbench-state">{props.state}</p>
      </div>
      <div class="workbench-ways">{props.children}</div>
    </header>
  );
}

/** Somebody else has saved the agent since it was read. */
function Changed(props: {
  scope: string;
  slug: string;
  reload: () => void;
  over: (version: number) => void;
}) {
  const overwrite = async () => {
    const now = await readAgent(props.scope, props.slug, new AbortController().signal);
    if (now.row.updated !== undefined) props.over(now.row.updated);
  };
  return (
    <>
      <button type="button" class="small" onClick={props.reload}>
        {text.editor.theirs}
      </button>
      <button type="button" class="small danger" onClick={() => void overwrite()}>
        {text.editor.overwrite}
      </button>
    </>
  );
}

let asksBeforeLeaving = true;

/** What is left now has been saved. */
function leaveUnasked(): void {
  asksBeforeLeaving = false;
}

/** Asks before a text that was not saved is left. */
function useUnsaved(unsaved: boolean): void {
  // At once: a key that leaves may follow the one that typed.
  useLayoutEffect(() => {
    asksBeforeLeaving = unsaved;
    if (!unsaved) return;
    const path = location.pathname;
    const stop = guardLeaving(
      (to) => !asksBeforeLeaving || to.split('?')[0] === path || confirm(text.editor.leave),
    );
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener('beforeunload', warn);
    return () => {
      stop();
      window.removeEventListener('beforeunload', warn);
    };
  }, [unsaved]);
}
