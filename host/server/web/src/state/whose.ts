/** Whose this page is. What one person typed and saw is not for the next one who logs in with the
 * same browser. */

const WHOSE = 'belljar.whose';

/** To whom this page was shown so far. */
let shown: string | undefined;

/** Takes note of who looks at the page. `true`: it was shown to somebody else before. What that one
 * left in the browser's store is gone then, also where the page was loaded anew meanwhile. */
export function isAnother(caller: { tenant: string; actor: string }): boolean {
  const now = `${caller.tenant} ${caller.actor}`;
  const left = sessionStorage.getItem(WHOSE);
  if (left !== null && left !== now) sessionStorage.clear();
  sessionStorage.setItem(WHOSE, now);
  const another = shown !== undefined && shown !== now;
  shown = now;
  return another;
}
