/** The events of a session, as `host/agent/src/events.rs` has them: their types come from there by the
 * description of the API. New kinds and new fields may come within a version: a reader passes over what it
 * does not know. */

import type { components } from './schema';

type Schemas = components['schemas'];

/** Amounts that were used. */
export type Usage = Schemas['RunUsage'];

export type EndStatus = Schemas['RunStatus'];

/** One event, as it is stored and sent. */
export type SessionEvent = Schemas['SessionEvent'];

type Asks = Extract<SessionEvent, { type: 'permission_asked' }>;

/** All that a call could touch; an older event does not say it. */
export type Reach = { [Part in 'mounts' | 'hosts' | 'secrets']?: Asks[Part] | undefined };

type Common = 'event_id' | 'at' | 'session' | 'message' | 'v' | 'run' | 'seq' | 'agent';

/** The fields by `type`. */
export type EventKind = Kinds<SessionEvent>;

type Kinds<Event> = Event extends unknown ? Omit<Event, Common> : never;
