// What happens in the tests: turns of agents, each with texts that no other test has.

import type { Jar } from "./jar.ts";
import { type Answer, Gate } from "./model.ts";

/** A turn with subagents. */
export interface Team {
  /** What the person says. */
  ask: string;
  goals: string[];
  /** What holds back the subagents that were to be held. */
  gate: Gate;
}

const say = (text: string): Answer => ({ say: text });
const call = (name: string, args: unknown, words?: string): Answer => ({
  ...(words ? { say: words } : {}),
  calls: [{ name, arguments: args }],
});

/**
 * Has the keeper hand out work: `done` subagents conclude, `held` more wait at the gate before they do, and
 * `failed` more get no answer from their model.
 */
export function team(jar: Jar, word: string, plan: { done?: number; held?: number; failed?: number }): Team {
  const gate = new Gate();
  const { done = 0, held = 0, failed = 0 } = plan;
  const ask = `Have the gauges looked at, ${word}.`;
  const goals = [...Array(done + held + failed).keys()].map((index) => `Look at gauge ${index} of ${word}.`);
  goals.forEach((goal, index) => {
    const look = call("file_read", { path: "notes.md" });
    if (index < failed) jar.model.play(goal, { fail: 400 });
    else if (index < failed + done) jar.model.play(goal, look, say(`Gauge ${index} of ${word} is well.`));
    else jar.model.play(goal, look, { say: [gate, `Gauge ${index} of ${word} was late.`] });
  });
  const tasks = goals.map((task) => ({ agent: "scout", task, context: `The notes of ${word} are in notes.md.` }));
  jar.model.play(ask, call("delegate_parallel", { tasks }, `I will have them looked at, ${word}.`), say(`All gauges of ${word} were looked at.`));
  return { ask, goals, gate };
}

/** A turn whose calls are allowed, refused and wrong. */
export function refused(jar: Jar, word: string): string {
  const ask = `Look where you may not, ${word}.`;
  jar.model.play(
    ask,
    { say: `First the notes, ${word}.`, calls: [{ name: "file_read", arguments: { path: "notes.md" } }, { name: "file_read", arguments: { path: "../../etc/passwd" } }] },
    call("file_search", { pattern: "datum" }),
    say(`What lies outside of the workspace was refused, ${word}.`),
  );
  return ask;
}

/** A turn that writes to the overlay: to a file that is there, to a new one, and one that would run later. */
export async function written(jar: Jar, word: string): Promise<string> {
  const ask = `Make a table, ${word}.`;
  await jar.file(`tides-${word}.md`, `high water at 06:12\nlow water at 12:30\n`);
  jar.model.play(
    ask,
    {
      calls: [
        { name: "file_edit", arguments: { path: `tides-${word}.md`, old_text: "low water at 12:30", new_text: `low water at 12:40` } },
        { name: "file_write", arguments: { path: `table-${word}.md`, content: `| tide | time |\n| --- | --- |\n| high | 06:12 |\n` } },
        { name: "file_write", arguments: { path: `lefthook-${word}.yml`, content: `pre-commit: ${word}\n` } },
      ],
    },
    say(`The table of ${word} is made.`),
  );
  return ask;
}

/** A turn that asks before it writes, so many times. */
export function asking(jar: Jar, word: string, times = 1): string {
  const ask = `Write it down, ${word}.`;
  const writes = [...Array(times).keys()].map((index) =>
    call("file_write", { path: `log-${word}-${index}.md`, content: `entry ${index} of ${word}\n` }),
  );
  jar.model.play(ask, ...writes, say(`That was all of ${word}.`));
  return ask;
}

/** A turn that asks the person something. */
export function wondering(jar: Jar, word: string, options: string[] = []): string {
  const ask = `Ask me first, ${word}.`;
  jar.model.play(ask, call("clarify", { question: `Which gauge of ${word}?`, options }), say(`Thank you, ${word}.`));
  return ask;
}

/** A turn that says one text. */
export function told(jar: Jar, word: string, text: string): string {
  const ask = `Tell me, ${word}.`;
  jar.model.play(ask, say(text));
  return ask;
}

/** A turn that stops in the middle of its answer until the gate opens. */
export function slow(jar: Jar, word: string): { ask: string; gate: Gate } {
  const gate = new Gate();
  const ask = `Take your time, ${word}.`;
  jar.model.play(ask, { say: [`The first half of ${word}, `, gate, `and the second half of ${word}.`] });
  return { ask, gate };
}
