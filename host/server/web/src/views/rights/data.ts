/** The rights of all agents, and why one of them is as it is. */

import { api, got, type Of } from '../../api/client';

/** A limit with what holds where nobody says otherwise. */
export type LimitRow = Of<'LimitBody'>;

/** The whole matrix. */
export type Rights = Omit<Of<'RightsBody'>, 'next'>;

/** Reads the matrix, page by page; `some` is given what there is after each of them. */
export async function allRights(
  signal: AbortSignal,
  some?: (rights: Rights) => void,
): Promise<Rights> {
  const all: Rights = { tools: [], limits: [], agents: [] };
  for (let after: string | undefined; ;) {
    const query = after === undefined ? {} : { after };
    const page = await got(api.GET('/v1/rights', { params: { query }, signal }));
    all.tools = page.tools;
    all.limits = page.limits;
    all.agents.push(...page.agents);
    if (!page.next) return all;
    some?.({ ...all, agents: [...all.agents] });
    after = page.next;
  }
}

/** Why an agent may call a tool, or not. */
export type Explained = Of<'Explained'>;

/** Asks the four sources about one tool. */
export function explain(agent: string, tool: string, signal: AbortSignal): Promise<Explained> {
  return got(api.GET('/v1/explain', { params: { query: { agent, tool } }, signal }));
}
