/** The questions that wait for a person, above every view. Those of the session that is shown stand
 * in its conversation, where the work is. */

import { useEffect, useState } from 'preact/hooks';
import { useKeys } from '../lib/keys';
import { place } from '../router';
import { questions, watchQuestions } from '../state/questions';
import { text } from '../text';
import { answerByKey, ofList, QuestionBox } from '../ui/question';
import { Status } from '../ui/status';

export function Questions() {
  const [open, setOpen] = useState<boolean>();
  useEffect(watchQuestions, []);
  useKeys([
    { key: 'a', about: text.keys.once, run: () => answerByKey('a') },
    { key: 'A', about: text.keys.turn, run: () => answerByKey('A') },
    { key: 'x', about: text.keys.no, run: () => answerByKey('x') },
  ]);
  const all = questions.value;
  useEffect(() => {
    const count = all.length;
    document.title = document.title.replace(/^\(\d+\) /, '');
    if (count > 0) document.title = `(${count}) ${document.title}`;
  }, [all.length, place.value.href]);
  if (all.length === 0) return null;
  const here = place.value.path[0] === 'sessions' ? place.value.path[1] : undefined;
  const elsewhere = all.filter((one) => one.session !== here);
  // One is shown where there is room. More would push away what somebody looks at.
  const shown = open ?? (elsewhere.length === 1 && matchMedia('(min-width: 800px)').matches);
  return (
    <div role="group" class="banner warn questions" aria-label={text.asking.all}>
      <div class="questions-head">
        <Status state="waiting" word={text.frame.waiting(all.length)} />
        {elsewhere.length > 0 && (
          <button
            type="button"
            class="small"
            aria-expanded={shown}
            aria-label={text.asking.which(shown ? text.asking.fold : text.asking.show)}
            onClick={() => setOpen(!shown)}
          >
            {shown ? `▾ ${text.asking.fold}` : `▸ ${text.asking.show}`}
          </button>
        )}
      </div>
      {shown && elsewhere.length > 0 && (
        <ul class="plain">
          {elsewhere.slice(0, 20).map((one) => (
            <li key={`${one.session} ${one.id}`}>
              <QuestionBox session={one.session} asked={ofList(one)} compact link={`/sessions/${encodeURIComponent(one.session)}`} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
