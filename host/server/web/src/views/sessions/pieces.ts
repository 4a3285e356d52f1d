/** A conversation as a flat list of pieces, so that only those in sight have to be drawn. */

import type { Agent, BatchPlace, Call, Note, Said, Turn } from '../../state/fold';
import type { MessageRow } from '../../state/open';

export type Piece = { key: string; message: string } & (
  | { kind: 'user'; text: string; at: number; actor: string | undefined; pending: boolean }
  | { kind: 'head'; agent: string; at: number }
  | { kind: 'said'; said: Said; live: boolean; agent: string }
  | { kind: 'calls'; calls: Call[]; over: boolean }
  | { kind: 'batch'; place: BatchPlace; parent: string }
  | { kind: 'note'; note: Note }
  | { kind: 'text'; text: string; agent: string }
  | { kind: 'end' }
  | { kind: 'summary' }
);

/** Refused: the sandbox or a right said no. */
export function isRefused(call: Pick<Call, 'denials' | 'ending'>): boolean {
  return call.denials > 0 || call.ending === 'denied' || call.ending === 'refused';
}

/** What an agent said and did, calls in a row together. */
export function agentPieces(message: string, agent: Agent): Piece[] {
  const pieces: Piece[] = [];
  const over = agent.state !== 'running' && agent.state !== 'queued';
  let calls: Call[] = [];
  const flush = () => {
    const first = calls[0];
    if (first) pieces.push({ kind: 'calls', key: `calls ${first.key}`, message, calls, over: true });
    calls = [];
  };
  agent.items.forEach((item, at) => {
    switch (item.kind) {
      case 'call':
        // What a call of a tool called stands with it in the glass.
        if (item.parent === undefined) calls.push(item);
        break;
      case 'said': {
        flush();
        const live = !over && at === agent.items.length - 1;
        if (item.text.trim() || live) pieces.push({ kind: 'said', key: item.key, message, said: item, live, agent: agent.path });
        break;
      }
      case 'batch':
        flush();
        pieces.push({ kind: 'batch', key: item.key, message, place: item, parent: agent.path });
        break;
      case 'note':
        flush();
        pieces.push({ kind: 'note', key: item.key, message, note: item });
        break;
    }
  });
  const first = calls[0];
  if (first) pieces.push({ kind: 'calls', key: `calls ${first.key}`, message, calls, over });
  return pieces;
}

/** The conversation. `turns`: by message. */
export function conversation(
  messages: readonly MessageRow[],
  turns: ReadonlyMap<string, Turn>,
  more: { said: string | undefined; upto: number | undefined; stored: ReadonlyMap<string, { size: number }> },
): Piece[] {
  const pieces: Piece[] = [];
  const shown = new Set<string>();
  for (const row of messages) {
    if (row.role === 'user') {
      const actor = (row.metadata as { actor?: string } | null)?.actor;
      pieces.push({ kind: 'user', key: row.id, message: row.id, text: row.text, at: row.created, actor, pending: false });
    } else {
      shown.add(row.id);
      answerPieces(pieces, row, turns.get(row.id), more.stored.get(row.id)?.size ?? 0);
    }
    if (row.place === more.upto) pieces.push({ kind: 'summary', key: 'summary', message: row.id });
  }
  // Words of this page whose row was not read yet.
  if (more.said !== undefined) {
    pieces.push({ kind: 'user', key: 'said', message: '', text: more.said, at: Date.now(), actor: undefined, pending: true });
  }
  for (const [message, turn] of turns) {
    const before = messages.length > 0 && message < (messages[0]?.id ?? '');
    if (!shown.has(message) && !before) answerPieces(pieces, undefined, turn, 0);
  }
  return pieces;
}

function answerPieces(pieces: Piece[], row: MessageRow | undefined, turn: Turn | undefined, stored: number): void {
  const message = row?.id ?? turn?.message ?? '';
  const name = turn?.root.path ?? agentOf(row);
  pieces.push({ kind: 'head', key: `head ${message}`, message, agent: name, at: turn?.first ?? row?.created ?? 0 });
  const own = turn ? agentPieces(message, turn.root) : [];
  pieces.push(...own);
  if (!turn && stored > 0) {
    // A run whose events are not kept: its rows are.
    const place: BatchPlace = { kind: 'batch', key: `rows ${message}`, step: 0, children: [], titles: new Map(), summaries: new Map() };
    pieces.push({ kind: 'batch', key: place.key, message, place, parent: name });
  }
  const spoke = own.some((piece) => piece.kind === 'said');
  if (!spoke && row?.text.trim()) pieces.push({ kind: 'text', key: `text ${message}`, message, text: row.text, agent: name });
  pieces.push({ kind: 'end', key: `end ${message}`, message });
}

function agentOf(row: MessageRow | undefined): string {
  const agent = (row?.metadata as { agent?: string } | null)?.agent ?? '';
  return agent.slice(agent.lastIndexOf('/') + 1);
}
