/** An event out of its JSON. */

import type { SessionEvent } from './events';

/** The turn that an event belongs to. */
const TURN = /^\{"event_id":\d+,"at":\d+,"session":"[^"]*","message":"([^"]*)"/;

/** An event out of its JSON. Of older programs, the `text` of a warning and of a tool's progress is a
 * second `message` behind the turn's id. */
export function read(data: string): SessionEvent | undefined {
  try {
    const event = JSON.parse(data) as SessionEvent & { text?: string };
    if (typeof event?.event_id !== 'number' || typeof event.type !== 'string') return undefined;
    const turn = TURN.exec(data)?.[1];
    if (turn !== undefined && turn !== event.message) {
      event.text = event.message;
      event.message = turn;
    }
    return event;
  } catch {
    return undefined;
  }
}
