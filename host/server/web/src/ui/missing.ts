/** A part of the page that could not be loaded, and the way on. A browser does not ask again for a file
 * that it did not get, so the whole page is loaded anew, once there is a server. */

import { Problem } from '../api/problem';
import { text } from '../text';

async function answers(): Promise<boolean> {
  return fetch('/v1/me', { credentials: 'same-origin', cache: 'no-store' }).then(
    () => true,
    () => false,
  );
}

/** Why it could not be loaded: nobody answers, or the files of this page are gone from an updated
 * server. */
export async function whyMissing(): Promise<Problem> {
  return (await answers()) ? new Problem('updated', 0, text.frame.outdated) : Problem.of(new TypeError('nobody answers'));
}

/** Loads the page anew, where there is a server for it. */
export async function loadAnew(): Promise<void> {
  if (await answers()) location.reload();
}
