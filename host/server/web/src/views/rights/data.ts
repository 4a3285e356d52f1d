/** The rights of all agents, and why one of them is as it is. */

import { send } from '../../api/client';
import type { AgentRights, RightsTool, Source } from './matrix';

/** A limit with what holds where nobody says otherwise. */
export interface LimitRow {
  key: string;
  unit: string;
  default: number;
  why: string;
}

/** The whole matrix. */
export interface Rights {
  tools: RightsTool[];
  limits: LimitRow[];
  agents: AgentRights[];
}

/** Reads the matrix, page by page. */
export async function allRights(signal: AbortSignal): Promise<Rights> {
  const all: Rights = { tools: [], limits: [], agents: [] };
  for (let after: string | undefined; ;) {
    const query = after === undefined ? '' : `?after=${encodeURIComponent(after)}`;
    const page = await send<Rights & { next?: string | null }>(
      'GET',
      `/v1/rights${query}`,
      undefined,
      { signal },
    );
    all.tools = page.tools;
    all.limits = page.limits;
    all.agents.push(...page.agents);
    if (!page.next) return all;
    after = page.next;
  }
}

/** The answer of one source. */
export interface Vote {
  source: Source;
  verdict: string;
  why: string;
}

/** Why an agent may call a tool, or not. */
export interface Explained {
  agent: string;
  tool: string;
  permission: string;
  decided_by: Source | null;
  votes: Vote[];
  command?: string | null;
}

/** Asks the four sources about one tool. */
export function explain(agent: string, tool: string, signal: AbortSignal): Promise<Explained> {
  const query = new URLSearchParams({ agent, tool });
  return send('GET', `/v1/explain?${query}`, undefined, { signal });
}
