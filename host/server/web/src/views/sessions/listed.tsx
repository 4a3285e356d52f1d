/** Names, one a line, as many as can be looked at. */

import { text } from '../../text';
import { Name } from '../../ui/foreign';

export function Listed({ of }: { of: readonly string[] }) {
  if (of.length === 0) return <span class="note">{text.glass.none}</span>;
  return (
    <ul class="plain">
      {of.slice(0, 200).map((one) => (
        <li key={one}>
          <Name of={one} code most={200} />
        </li>
      ))}
      {of.length > 200 && <li class="note">+ {of.length - 200}</li>}
    </ul>
  );
}
