/** A tool call in a line: what, on what, how long; a refusal is loud. */

import { fuel, millis, running } from '../../lib/format';
import { place } from '../../router';
import { callWords } from '../../state/words';
import { isWaiting, type Call } from '../../state/fold';
import { useNow } from '../../lib/now';
import { text } from '../../text';
import { Name } from '../../ui/foreign';
import { Status, type State } from '../../ui/status';
import { callHref } from './address';
import { isRefused } from './pieces';

export function callState(call: Call): State {
  if (isRefused(call)) return 'refused';
  if (call.ended === undefined) return isWaiting(call) ? 'waiting' : 'running';
  if (call.ok) return 'completed';
  return call.ending === 'cancelled' ? 'cancelled' : 'failed';
}

/** `live`: its turn goes on, so that a call without an end still runs. `stamp` changes with the call,
 * which is changed in its place. */
export function CallLine({ session, message, call, live }: { session: string; message: string; call: Call; live: boolean; stamp: number }) {
  const state = callState(call);
  const going = state === 'running' || state === 'waiting';
  const shown = going && !live ? 'cancelled' : state;
  const { what, on } = callWords(call);
  const now = useNow(going && live);
  const took = call.ended !== undefined ? millis(call.micros / 1000) : going && live ? running(now - call.started) : '';
  const href = callHref(session, message, call);
  const refused = shown === 'refused';
  return (
    <div class={`call is-${shown}`} data-call={call.id} data-refused={refused ? '' : undefined}>
      <a class="call-line" href={href} data-step="" aria-current={place.value.href === href ? 'true' : undefined}>
        <Status state={shown} quiet />
        <span class="call-what">
          {what} {on && <Name of={on} code most={140} />}
        </span>
        <span class="call-facts num">
          {call.progress && shown === 'running' && <Name of={call.progress.message} most={60} />}
          {took}
          {call.fuel > 0 && <span class="call-fuel"> {fuel(call.fuel)}</span>}
        </span>
      </a>
      {refused && (
        <p class="refusal">
          <span>
            {text.glass.refusedLine('')}
            <Name of={call.error ?? text.status.refused} most={400} />
          </span>{' '}
          <a href={`${href}?why=1`}>{text.glass.why}</a>
        </p>
      )}
      {shown === 'failed' && call.error && (
        <p class="call-error">
          <Name of={call.error} most={400} />
        </p>
      )}
    </div>
  );
}
