/** The sessions at the side. */

export function SessionList() {
  return null;
}
