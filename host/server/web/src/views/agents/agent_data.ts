/** One agent: read, checked, saved, deleted. */

import { api, got, type Of } from '../../api/client';
import { rowOf, type AgentRow } from './data';

/** An agent with its text, as far as that is shown. */
export interface AgentDetail {
  row: AgentRow;
  /** The whole file; `undefined` where the server does not show it. */
  text: string | undefined;
  /** Its prompt. */
  body: string | undefined;
}

/** Reads the agent of a scope: several may have one name. */
export async function readAgent(
  scope: string,
  slug: string,
  signal: AbortSignal,
): Promise<AgentDetail> {
  const params = { path: { slug }, query: { scope } };
  const agent = await got(api.GET('/v1/agents/{slug}', { params, signal }));
  return { row: rowOf(agent), text: agent.text ?? undefined, body: agent.body ?? undefined };
}

/** What the server says of a text. */
export type Checked = Of<'Validated'>;

/** Has the server check a text. */
export function check(
  slug: string | undefined,
  content: string,
  signal: AbortSignal,
): Promise<Checked> {
  const body = slug === undefined || slug === '' ? { text: content } : { slug, text: content };
  return got(api.POST('/v1/agents/validate', { body, signal }));
}

/** Keeps a new agent. */
export function create(slug: string, content: string): Promise<Of<'AgentBody'>> {
  return got(api.POST('/v1/agents', { body: { slug, text: content } }));
}

/** Keeps the next version of an agent, if nobody else did since the version `updated`. */
export function replace(slug: string, content: string, updated: number): Promise<Of<'AgentBody'>> {
  return got(
    api.PUT('/v1/agents/{slug}', {
      params: { path: { slug } },
      headers: { 'if-match': `"${updated}"` },
      body: { text: content },
    }),
  );
}

/** Deletes an agent that is kept here. */
export function remove(slug: string): Promise<unknown> {
  return got(api.DELETE('/v1/agents/{slug}', { params: { path: { slug } } }));
}
