/** Sessions: a new one, one that is there with what belongs to it, two runs side by side. */

import { lazy } from '../../ui/lazy';
import type { ViewProps } from '../../routes';
import { text } from '../../text';
import { Empty } from '../../ui/basics';
import { NewSession } from './new';
import { OpenView } from './open';


const Compare = lazy(() => import('./compare'));

export default function Sessions({ path, query }: ViewProps) {
  const [id, ...rest] = path;
  if (id === 'new') return <NewSession agent={query.get('agent') ?? undefined} />;
  if (id === 'compare') return <Compare query={query} />;
  if (id !== undefined) return <OpenView key={id} id={id} rest={rest} />;
  return (
    <div class="view">
      <h1>{text.nav.sessions}</h1>
      <Empty title={text.begin.how}>
        <p>{text.sessions.emptyHow}</p>
        <a class="button primary" href="/sessions/new">
          {text.nav.new}
        </a>
      </Empty>
    </div>
  );
}
