/** What was typed and not yet sent, by the session that it was meant for. */

/** Most characters that are kept. */
const MOST = 100_000;
/** The draft of a session that is not begun yet. */
export const NEW = 'new';

const place = (session: string) => `belljar.draft.${session}`;

export function draftOf(session: string): string {
  return sessionStorage.getItem(place(session)) ?? '';
}

export function keepDraft(session: string, words: string): void {
  if (words) sessionStorage.setItem(place(session), words.slice(0, MOST));
  else sessionStorage.removeItem(place(session));
}

/** Hands the draft of a session that is gone on to the next one. `false`: there was none. */
export function handOn(session: string): boolean {
  const words = draftOf(session);
  if (!words) return false;
  if (!draftOf(NEW)) keepDraft(NEW, words);
  keepDraft(session, '');
  return true;
}
