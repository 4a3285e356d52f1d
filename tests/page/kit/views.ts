// Every view of the page, with something on it.

import type { Page } from "@playwright/test";
import type { Jar } from "./jar.ts";
import * as scenes from "./scenes.ts";

export interface View {
  name: string;
  /** Where it is, once there is something to show. */
  path: (made: Made) => string;
  /** A text that stands there when it is drawn. */
  shows: (made: Made) => string | RegExp;
}

/** What was made for the views to show. */
export interface Made {
  word: string;
  told: string;
  team: string;
  refused: string;
  written: string;
  asked: string;
}

export const VIEWS: View[] = [
  { name: "new session", path: () => "/sessions/new", shows: () => "Choose who answers" },
  { name: "sessions", path: () => "/sessions", shows: (made) => `Tell me, ${made.word}.` },
  { name: "chat", path: (made) => `/sessions/${made.told}`, shows: () => "Tides at the bridge" },
  { name: "team", path: (made) => `/sessions/${made.team}`, shows: () => /of 3 done/ },
  { name: "refused", path: (made) => `/sessions/${made.refused}`, shows: () => /refused/i },
  { name: "written", path: (made) => `/sessions/${made.written}`, shows: (made) => `The table of ${made.word} is made.` },
  { name: "asked", path: (made) => `/sessions/${made.asked}`, shows: () => "Allow once" },
  { name: "agents", path: () => "/agents", shows: () => "courier" },
  { name: "agent", path: () => "/agents/home/scout", shows: () => "You find files." },
  { name: "new agent", path: () => "/agents/new", shows: () => "Description" },
  { name: "rights", path: () => "/rights", shows: () => "asker" },
  { name: "tools", path: () => "/tools", shows: () => "file_read" },
  { name: "usage", path: () => "/usage", shows: () => /tok/ },
  { name: "audit", path: () => "/audit", shows: () => "Who changed what" },
  { name: "running", path: () => "/running", shows: () => "asker" },
  { name: "libraries", path: () => "/libraries", shows: () => "Agents that somebody else wrote" },
];

const TIDES = `## Tides at the bridge

The gauge at **old-bridge** reads 5 cm too high: its datum was measured again.

| station | datum | since |
| --- | --- | --- |
| old-bridge | 0.35 m | 2026-02 |
| north-pier | 1.10 m | 2025-11 |

1. Set \`DATUM\` in \`src/alarm.py\`
2. Run the alarms of the last two weeks again

\`\`\`python
DATUM = 0.35
height = reading - DATUM
\`\`\`
`;

/** Makes something for every view to show. */
export async function furnish(jar: Jar, word: string): Promise<Made> {
  const told = await jar.chat("teller", scenes.told(jar, word, TIDES));
  const team = await jar.chat("keeper", scenes.team(jar, word, { done: 2, failed: 1 }).ask);
  const refused = await jar.chat("scout", scenes.refused(jar, word));
  const written = await jar.chat("writer", await scenes.written(jar, word));
  const asked = await jar.begin("asker", scenes.asking(jar, word));
  return { word, told: told.session, team: team.session, refused: refused.session, written: written.session, asked };
}

/** Opens a view, and waits until it shows what it is there for. */
export async function open(page: Page, view: View, made: Made): Promise<void> {
  await page.goto(view.path(made));
  await page.getByText(view.shows(made)).first().waitFor({ state: "attached" });
}
