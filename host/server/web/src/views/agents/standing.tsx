/** How an agent stands: shape, colour, word. */

import { text } from '../../text';
import { Status, type State } from '../../ui/status';
import type { Standing as Word } from './data';

const STATES: Record<Word, State> = {
  ready: 'completed',
  warnings: 'waiting',
  blocked: 'refused',
  invalid: 'failed',
  draft: 'queued',
};

export function Standing({ of }: { of: Word }) {
  return <Status state={STATES[of]} word={text.agents.standing[of]} />;
}
