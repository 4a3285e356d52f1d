/** The API, typed by its own document: a route or a field that changes breaks the build. */

import createClient from 'openapi-fetch';
import { Problem } from './problem';
import type { components, paths } from './schema';

/** A type of the API by its name. */
export type Of<Name extends keyof components['schemas']> = components['schemas'][Name];

/** The calls, one for each method: `api.GET('/v1/sessions', { params: … })`. */
export const api = createClient<paths>({ baseUrl: globalThis.location?.origin ?? 'http://localhost', credentials: 'same-origin' });

type Answer<T> = Promise<{ data?: T; error?: unknown; response: Response }>;

const unauthorized = new Set<() => void>();

/** Calls `listener` when the server takes the key no longer. */
export function onUnauthorized(listener: () => void): void {
  unauthorized.add(listener);
}

/** Says that the key is not valid any more. */
export function lostKey(): void {
  for (const listener of unauthorized) listener();
}

/** What a call gives, or a `Problem` that is thrown. */
export async function got<T>(answer: Answer<T>): Promise<T> {
  let result: Awaited<Answer<T>>;
  try {
    result = await answer;
  } catch (error) {
    throw Problem.of(error);
  }
  const { data, error, response } = result;
  if (response.ok) return data as T;
  const problem = Problem.from(response, error);
  if (response.status === 401) lostKey();
  throw problem;
}

/** A call by its path, where the answer's type is said by hand. `quiet`: a 401 is no lost key. */
export async function send<T = unknown>(
  method: string,
  path: string,
  body?: unknown,
  { quiet = false, signal }: { quiet?: boolean; signal?: AbortSignal } = {},
): Promise<T> {
  const headers: Record<string, string> = { accept: 'application/json' };
  if (body !== undefined) headers['content-type'] = 'application/json';
  let response: Response;
  try {
    const json = body === undefined ? undefined : JSON.stringify(body);
    response = await fetch(path, { method, headers, body: json, credentials: 'same-origin', signal });
  } catch (error) {
    throw Problem.of(error);
  }
  const said: unknown = await response.json().catch(() => undefined);
  if (response.ok) return said as T;
  const problem = Problem.from(response, said);
  if (response.status === 401 && !quiet) lostKey();
  throw problem;
}
