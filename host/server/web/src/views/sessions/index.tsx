/** Sessions: a new one, one that is there, its changes. */

import type { ViewProps } from '../../routes';
import { text } from '../../text';

export default function Sessions(_props: ViewProps) {
  return (
    <div class="view">
      <h1>{text.nav.sessions}</h1>
    </div>
  );
}
