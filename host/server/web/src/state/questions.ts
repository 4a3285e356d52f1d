/** The questions of all sessions that wait for a person. Who answers one, wherever, takes it away
 * everywhere. */

import { signal } from '@preact/signals';
import { api, got, type Of } from '../api/client';
import { announce } from './live';
import { me } from './me';
import { text } from '../text';

export type Question = Of<'QuestionBody'>;

export const questions = signal<readonly Question[]>([]);

const EVERY = 3_000;
/** A tab that is not seen says by its title that somebody waits. */
const HIDDEN = 20_000;
let timer = 0;
let begun = false;
let known = new Set<string>();

const name = (one: Question) => `${one.session} ${one.id}`;

async function look(): Promise<void> {
  clearTimeout(timer);
  if (me.peek().state === 'in') {
    try {
      const found = (await got(api.GET('/v1/questions'))).questions;
      const fresh = found.filter((one) => !known.has(name(one)));
      known = new Set(found.map(name));
      if (fresh.length > 0) announce(text.frame.waiting(found.length));
      if (JSON.stringify(found) !== JSON.stringify(questions.peek())) questions.value = found;
    } catch {
      // The next look may find it.
    }
  }
  timer = window.setTimeout(() => void look(), document.visibilityState === 'visible' ? EVERY : HIDDEN);
}

/** Looks now. */
export function lookQuestions(): void {
  void look();
}

/** Keeps looking. */
export function watchQuestions(): void {
  if (begun) return;
  begun = true;
  document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && void look());
  void look();
}

/** Answers one: it is gone here at once. */
export async function answer(session: string, id: number, body: Of<'AnswerBody'>): Promise<void> {
  const path = { id: session, question: String(id) };
  await got(api.POST('/v1/sessions/{id}/questions/{question}', { params: { path }, body }));
  questions.value = questions.peek().filter((one) => one.session !== session || one.id !== id);
}
