/** The events of a session, as `host/agent/src/events.rs` documents them. New kinds and new fields
 * may come within a version: a reader passes over what it does not know. */

/** Counts of the subagents of a batch. */
export interface Counts {
  total: number;
  queued: number;
  running: number;
  completed: number;
  partial: number;
  failed: number;
  cancelled: number;
}

/** Amounts that were used. */
export interface Usage {
  steps: number;
  input_tokens: number;
  cached_tokens: number;
  output_tokens: number;
  tool_calls: number;
  fuel: number;
}

export type EndStatus = 'completed' | 'partial' | 'failed' | 'cancelled';

/** All that a call could touch; an older event does not say it. */
export interface Reach {
  mounts?: { path: string; access: string }[] | undefined;
  hosts?: string[] | undefined;
  secrets?: string[] | undefined;
}

/** The fields by `type`. */
export type EventKind =
  | { type: 'run_started'; id: string; model: string; tools: string[]; workspace: string }
  | { type: 'run_resumed'; kept: number }
  | { type: 'history_compacting'; turns: number; model: string }
  | { type: 'history_compacted'; turns: number; tokens_before: number; tokens_after: number; used: Usage }
  | { type: 'step_started'; step: number; last: boolean }
  | { type: 'text_delta'; text: string }
  | { type: 'tool_call_started'; step: number; call_id: string; parent?: string; tool: string; arguments: string }
  | { type: 'tool_progress'; call_id: string; tool: string; done: number; total?: number; text?: string }
  | {
      type: 'tool_call_finished';
      step: number;
      call_id: string;
      parent?: string;
      tool: string;
      ok: boolean;
      ending: string;
      error?: string;
      fuel: number;
      micros: number;
      denials: number;
      bytes: number;
    }
  | {
      type: 'subagent_batch_start';
      batch: string;
      title?: string;
      children: { child: string; task: string }[];
      background: boolean;
      max_concurrent: number;
    }
  | { type: 'subagent_batch_end'; batch: string; summary: string; counts: Counts }
  | { type: 'subagent_background'; batch: string; id: string }
  | { type: 'subagent_update'; batch: string; child: string; counts: Counts }
  | {
      type: 'subagent_done';
      batch: string;
      child: string;
      status: EndStatus;
      steps: number;
      tokens: number;
      error?: string;
      counts: Counts;
    }
  | ({ type: 'permission_asked'; id: number; call_id: string; tool: string; arguments: string } & Reach)
  | { type: 'permission_answered'; id: number; call_id: string; tool: string; answer: 'yes' | 'for_run' | 'no' | 'nobody' | 'cancelled' }
  /** Of a private one the list of questions has the words that a person reads, while it is open. */
  | { type: 'question_asked'; id: number; question: string; options: string[]; private?: boolean }
  | { type: 'question_answered'; id: number; answered: boolean }
  | { type: 'todos'; items: { content: string; status: string }[] }
  | { type: 'hook_ran'; event: string; tool?: string; hook: string; decision: string; micros: number }
  | { type: 'team_started'; id: string; stages: number; workspace: string }
  | { type: 'team_stage_started'; stage: number; of: number; agents: string[] }
  | { type: 'team_stage_finished'; stage: number; status: EndStatus; error?: string }
  | { type: 'retry'; attempt: number; after_ms: number; reason: string; replaces?: boolean }
  | { type: 'warning'; text?: string }
  | { type: 'budget_warning'; meter: string; used: number; limit: number }
  | { type: 'run_finished'; status: EndStatus; error?: string; usage: Usage; total: Usage };

/** One event, as it is stored and sent. */
export type SessionEvent = EventKind & {
  /** Counts from 1 in the session, without gaps. */
  event_id: number;
  /** Milliseconds since 1970. */
  at: number;
  session: string;
  /** The agent's message whose turn it belongs to. */
  message: string;
  run: string;
  seq: number;
  /** The path of the agent that it is about: `main/scout#0`. */
  agent: string;
};
