/** The request that a model would be sent, cut into blocks with their sizes. */

import type { Of } from '../../api/client';

/** The kinds of blocks. */
export type BlockKind = 
  | 'system'
  | 'discovery'
  | 'skills'
  | 'advice'
  | 'message'
  | 'matched'
  | 'tool';

/** One block of a request. */
export interface Block {
  kind: BlockKind;
  /** The name of a tool, the role of a message, the heading of a text. */
  name: string;
  text: string;
  bytes: number;
  tokens: number;
  /** Why it is there, or what it leaves out. */
  why?: string | undefined;
}

/** How the note begins that stands behind a message and names what fits its words. */
const MATCHED = '\n\n<system_notice>These are not in your lists';

/** Bytes of a token where nobody has counted: what the estimate divides by. */
const BYTES_PER_TOKEN = 4;

/** The same as the server measured it: the parts of the request in the order of sending. */
export type Measured = Pick<Of<'BlockBody'>, 'bytes' | 'tokens' | 'why'>;

interface Request {
  system?: unknown;
  messages?: unknown;
  tools?: unknown;
}

/** Cuts a request, and takes the server's own measures where they are of the same parts. */
export function blocksOf(request: unknown, measured?: readonly Measured[] | null): Block[] {
  const cut = cutRequest((request ?? {}) as Request);
  if (measured?.length !== cut.length) return cut;
  return cut.map((block, at) => {
    const { bytes, tokens, why } = measured[at] ?? block;
    return { ...block, bytes, tokens, why: why ?? undefined };
  });
}

/** Sums of blocks by kind, in the order in which they are sent. */
export function byKind(
  blocks: readonly Block[],
): { kind: BlockKind; count: number; bytes: number; tokens: number }[] {
  const sums = new Map<BlockKind, { count: number; bytes: number; tokens: number }>();
  for (const block of blocks) {
    const sum = sums.get(block.kind) ?? { count: 0, bytes: 0, tokens: 0 };
    sums.set(block.kind, {
      count: sum.count + 1,
      bytes: sum.bytes + block.bytes,
      tokens: sum.tokens + block.tokens,
    });
  }
  return [...sums].map(([kind, sum]) => ({ kind, ...sum }));
}

function cutRequest(request: Request): Block[] {
  const system = list(request.system).map((part, at) => {
    const text = textOf(part);
    const kind = at === 0 ? 'system' : headed(text);
    return block(kind, /^#+ (.*)/.exec(text)?.[1]?.trim() ?? '', text);
  });
  const all = list(request.messages);
  const messages = all.flatMap((message, at) => {
    const { role, text } = message as { role?: unknown; text?: unknown };
    const whole = typeof text === 'string' && Object.keys(message as object).length <= 2;
    const name = String(role ?? '');
    // Of the last message alone: the notes of earlier ones are past.
    const note = whole && at === all.length - 1 ? text.lastIndexOf(MATCHED) : -1;
    if (whole && note >= 0) {
      return [
        block('message', name, text.slice(0, note)),
        block('matched', '', text.slice(note).trimStart()),
      ];
    }
    return [block('message', name, whole ? text : JSON.stringify(message, null, 2))];
  });
  const tools = list(request.tools).map((tool) => {
    const { name } = tool as { name?: unknown };
    return block('tool', String(name ?? ''), JSON.stringify(tool, null, 2), JSON.stringify(tool));
  });
  return [...system, ...messages, ...tools];
}

/** A block; its size is that of what is sent, which may be shown with more room. */
function block(kind: BlockKind, name: string, text: string, sent = text): Block {
  const bytes = new TextEncoder().encode(sent).length;
  return {
    kind,
    name,
    text,
    bytes,
    tokens: Math.ceil(bytes / BYTES_PER_TOKEN),
  };
}

function headed(text: string): BlockKind {
  if (text.startsWith('# Subagents')) return 'discovery';
  if (text.startsWith('# Skills')) return 'skills';
  return 'advice';
}

function textOf(part: unknown): string {
  if (typeof part === 'string') return part;
  const { text } = (part ?? {}) as { text?: unknown };
  return typeof text === 'string' ? text : JSON.stringify(part, null, 2);
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
