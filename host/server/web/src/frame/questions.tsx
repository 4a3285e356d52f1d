/** The questions that wait for a person, above every view. */

export function Questions() {
  return null;
}
