/** A turn that begins: what is said is sent, and the page lets go of the answer as soon as it knows
 * the turn's session. The turn runs on; its events come by the session's own stream. */

import { createParser } from 'eventsource-parser';
import { lostKey, type Of } from '../../api/client';
import { Problem } from '../../api/problem';
import { read } from '../../api/read';

/** Begins a turn and gives its session. */
export async function begin(body: Partial<Of<'ChatBody'>> & { text: string }): Promise<{ session: string; message: string }> {
  const abort = new AbortController();
  let response: Response;
  try {
    response = await fetch('/v1/chat', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ ...body, stream: true }),
      credentials: 'same-origin',
      signal: abort.signal,
    });
  } catch (error) {
    throw Problem.of(error);
  }
  if (!response.ok || !response.body) {
    if (response.status === 401) lostKey();
    throw Problem.from(response, await response.json().catch(() => undefined));
  }
  const [session, message] = [response.headers.get('belljar-session'), response.headers.get('belljar-message')];
  try {
    if (session && message) return { session, message };
    return await firstOf(response.body);
  } finally {
    abort.abort();
  }
}

/** The first event says to which session it belongs. */
async function firstOf(body: ReadableStream<BufferSource>): Promise<{ session: string; message: string }> {
  let found: { session: string; message: string } | undefined;
  const parser = createParser({
    onEvent: ({ data }) => {
      const event = read(data);
      if (event) found ??= { session: event.session, message: event.message };
    },
  });
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, BufferSource>).getReader();
  while (!found) {
    const { done, value } = await reader.read();
    if (done) throw new Problem('offline', 0, 'the stream ended before it began');
    parser.feed(value);
  }
  return found;
}
