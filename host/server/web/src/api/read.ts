/** An event out of its JSON. */

import type { SessionEvent } from './events';

/** The turn that an event belongs to. */
const TURN = /^\{"event_id":\d+,"at":\d+,"session":"[^"]*","message":"([^"]*)"/;

/** A warning and a tool's progress have words of their own in `message`, behind the turn's id of
 * the same name: they become `words`. */
export function read(data: string): SessionEvent | undefined {
  try {
    const event = JSON.parse(data) as SessionEvent & { words?: string };
    if (typeof event?.event_id !== 'number' || typeof event.type !== 'string') return undefined;
    const turn = TURN.exec(data)?.[1];
    if (turn !== undefined && turn !== event.message) {
      event.words = event.message;
      event.message = turn;
    }
    return event;
  } catch {
    return undefined;
  }
}
