/** A request that failed, as the server says it (RFC 9457), or because nobody answered. */

import { cut, visible } from '../lib/foreign';
import { text } from '../text';

/** The last part of the problem's type; `offline`: nobody answered. */
export type ProblemKind = string;

interface Body {
  type?: string;
  title?: string;
  status?: number;
  detail?: string;
  hint?: string | null;
  limit?: { name: string; most: number; left: number; resets: string } | null;
}

export class Problem extends Error {
  readonly kind: ProblemKind;
  readonly status: number;
  readonly detail: string;
  readonly hint: string | undefined;
  readonly limit: Body['limit'];
  /** Seconds after which it may be tried again. */
  readonly after: number | undefined;

  constructor(kind: ProblemKind, status: number, detail: string, more: Partial<Pick<Problem, 'hint' | 'limit' | 'after'>> = {}) {
    super(detail);
    this.kind = kind;
    this.status = status;
    this.detail = detail;
    this.hint = more.hint;
    this.limit = more.limit;
    this.after = more.after;
  }

  /** Any failure as a problem. */
  static of(error: unknown): Problem {
    if (error instanceof Problem) return error;
    if (error instanceof DOMException && error.name === 'AbortError') return new Problem('aborted', 0, text.problems.aborted);
    if (error instanceof TypeError) return new Problem('offline', 0, text.problems.offline);
    return new Problem('page', 0, error instanceof Error ? error.message : String(error));
  }

  /** The problem of an answer that is none of success. */
  static from(response: Response, body: unknown): Problem {
    const after = Number(response.headers.get('retry-after'));
    return Problem.said(body, response.status, Number.isFinite(after) && after > 0 ? after : undefined);
  }

  /** A problem as the server has put it. */
  static said(body: unknown, status?: number, after?: number): Problem {
    const said: Body = typeof body === 'object' && body !== null ? body : {};
    const number = status ?? said.status ?? 0;
    const kind = said.type?.split('/').pop() || `status-${number}`;
    return new Problem(kind, number, said.detail ?? said.title ?? text.problems.status(number), {
      hint: said.hint ?? undefined,
      limit: said.limit,
      after,
    });
  }

  /** One sentence for a person. */
  sentence(): string {
    const detail = visible(cut(this.detail, 2_000));
    const begin = text.problems.kinds[this.kind];
    return begin ? `${begin} ${detail}` : detail;
  }

  /** Nobody answered, or the server cannot now: it may go on by itself. */
  get passes(): boolean {
    return this.kind === 'offline' || this.status === 503 || this.status === 502 || this.status === 504;
  }
}
