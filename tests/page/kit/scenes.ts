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

/** A turn in which the keeper sends a chief, who sends scouts. */
export function chain(jar: Jar, word: string): { ask: string; goals: string[]; order: string } {
  const ask = `Have somebody have the gauges looked at, ${word}.`;
  const order = `Send scouts for ${word}.`;
  const goals = [0, 1].map((index) => `Scout out gauge ${index} of ${word}.`);
  goals.forEach((goal, index) => jar.model.play(goal, call("file_read", { path: "notes.md" }), say(`Gauge ${index} of ${word} is well.`)));
  const tasks = goals.map((task) => ({ agent: "scout", task }));
  jar.model.play(order, call("delegate_parallel", { tasks }, `I send scouts, ${word}.`), say(`Both gauges of ${word} are well.`));
  jar.model.play(ask, call("delegate_parallel", { tasks: [{ agent: "chief", task: order }] }), say(`The chief of ${word} is content.`));
  return { ask, goals, order };
}

/** A turn with a program that reads so many files, and one that it may not. */
export function programmed(jar: Jar, word: string): string {
  const ask = `Write a program, ${word}.`;
  const code = [
    "const paths = ['notes.md', 'stations/old-bridge.md', '../../etc/passwd'];",
    "let read = 0;",
    "for (const path of paths) { try { tools.file_read({path}); read += 1; } catch (error) {} }",
    `\`read \${read} of ${word}\``,
  ].join("\n");
  jar.model.play(ask, call("run_javascript", { code }), say(`The program of ${word} ran.`));
  return ask;
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

/** A turn that writes one file, in folders that are not there. */
export function nested(jar: Jar, word: string): string {
  const ask = `Write it deep, ${word}.`;
  const path = `new-${word}/deep/tide.md`;
  jar.model.play(ask, call("file_write", { path, content: `high water of ${word}\n`, create_dirs: true }), say(`Written, ${word}.`));
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

/** A session with 10,000 events, in ten turns of calls and streamed words. */
export async function long(jar: Jar): Promise<{ session: string; events: number }> {
  let session: string | undefined;
  for (let turn = 0; turn < 10; turn += 1) {
    const ask = `Turn ${turn} of the long session.`;
    const calls = [...Array(20).keys()].map(() => ({ name: "file_read", arguments: { path: "notes.md" } }));
    const steps = [...Array(10).keys()].map((step) => ({ say: [...Array(60).keys()].map((word) => `${turn}.${step}.${word} `), calls }));
    jar.model.play(ask, ...steps, say(`End of turn ${turn}.`));
    session = (await jar.chat("keeper", ask, session)).session;
  }
  if (!session) throw new Error("no turn");
  const stored = await jar.api("GET", `/v1/sessions/${session}/events?follow=false&after=0`);
  return { session, events: stored.text.split("\n\n").length - 1 };
}
