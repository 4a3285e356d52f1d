/** Agents as the page lists them: those of files, those that are kept here, files that cannot be
 * read, and drafts. */

import { api, got, type Of } from '../../api/client';

/** The scope of agents that admins keep through the API. */
export const KEPT = 'library/api';

/** How an agent stands. */
export type Standing = 'ready' | 'warnings' | 'blocked' | 'invalid' | 'draft';

/** A finding about a text. */
export type Diagnostic = Of<'DiagnosticBody'>;

type Definition = Of<'DefinitionBody'>;

/** A row of the list. */
export interface AgentRow {
  /** As requests name it. */
  name: string;
  slug: string;
  scope: string;
  standing: Standing;
  reasons: string[];
  /** What unblocks it, for a terminal. */
  command: string | undefined;
  description: string;
  /** How many tools it is given; `undefined` where it is not known. */
  tools: number | undefined;
  updated: number | undefined;
  definition: Definition | undefined;
}

/** The name by which requests take an agent. */
export function nameOf(scope: string, slug: string): string {
  return scope.startsWith('library/') ? `${scope}/${slug}` : slug;
}

/** Where an agent is shown. */
export function hrefOf(row: { scope: string; slug: string }): string {
  const parts = [...row.scope.split('/'), row.slug];
  return `/agents/${parts.map(encodeURIComponent).join('/')}`;
}

/** The scope and the name behind `/agents/`; `null` where it is neither. */
export function fromPath(path: readonly string[]): { scope: string; slug: string } | null {
  const slug = path.at(-1);
  const scope = path.slice(0, -1).join('/');
  return slug === undefined || scope === '' ? null : { scope, slug };
}

/** The word of the server for how an agent stands. */
export function standingOf(status: string | undefined): Standing {
  switch (status) {
    case 'ready':
      return 'ready';
    case 'ready with warnings':
      return 'warnings';
    case 'blocked':
      return 'blocked';
    default:
      return 'invalid';
  }
}

/** Every agent, page by page. */
export async function allAgents(signal: AbortSignal): Promise<AgentRow[]> {
  const rows: AgentRow[] = [];
  for (let after: string | undefined; ;) {
    const query = after === undefined ? {} : { after };
    const page = await got(api.GET('/v1/agents', { params: { query }, signal }));
    rows.push(...page.agents.map(rowOf));
    rows.push(...(page.broken ?? []).map(brokenRow), ...(page.drafts ?? []).map(draftRow));
    if (page.next === undefined || page.next === null) return rows;
    after = page.next;
  }
}

/** A row of an agent that the server knows. */
export function rowOf(agent: Of<'AgentSummary'>): AgentRow {
  const definition = agent.definition ?? undefined;
  return {
    name: nameOf(agent.scope, agent.slug),
    slug: agent.slug,
    scope: agent.scope,
    standing: standingOf(definition?.status),
    reasons: definition?.reasons ?? [],
    command: definition?.command ?? undefined,
    description: definition?.description ?? '',
    tools: definition ? Object.keys(definition.tools).length : undefined,
    updated: agent.updated ?? undefined,
    definition,
  };
}

function brokenRow(file: Of<'BrokenBody'>): AgentRow {
  const said = file.diagnostics.filter((found) => found.severity === 'error');
  return {
    ...bare(file.scope, file.slug),
    standing: 'invalid',
    reasons: said.map((found) => `${file.file}${found.line > 0 ? `:${found.line}` : ''}: ${found.message}`),
  };
}

function draftRow(draft: Of<'DraftBody'>): AgentRow {
  return {
    ...bare('drafts', draft.slug),
    standing: 'draft',
    description: draft.description ?? '',
    reasons: draft.reasons,
    command: draft.command ?? undefined,
  };
}

function bare(scope: string, slug: string): AgentRow {
  return {
    name: nameOf(scope, slug),
    slug,
    scope,
    standing: 'invalid',
    reasons: [],
    command: undefined,
    description: '',
    tools: undefined,
    updated: undefined,
    definition: undefined,
  };
}

/** The rows of each scope: one's own first, then those that are kept here, then libraries. */
export function byScope(rows: readonly AgentRow[]): [scope: string, rows: AgentRow[]][] {
  const groups = new Map<string, AgentRow[]>();
  for (const row of rows) groups.set(row.scope, [...(groups.get(row.scope) ?? []), row]);
  const order = ['home', 'workspace', KEPT, 'drafts'];
  const rank = (scope: string): number => {
    const at = order.indexOf(scope);
    return at < 0 ? order.length : at;
  };
  return [...groups].sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

/** The form that a name takes in addresses and files: what the server makes of `name`. */
export function slugOf(name: string): string {
  // A letter at a time: a Greek sigma is not written otherwise at the end of a word.
  const lower = [...name.normalize('NFC')].map((letter) => letter.toLowerCase()).join('');
  return lower
    .normalize('NFC')
    .replace(/[^\p{L}\p{N}\p{M}\u2190-\u2bff\u{1f000}-\u{1faff}]+/gu, '-')
    .replace(/^-+|-+$/g, '');
}
