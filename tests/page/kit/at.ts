// Where things are on the page, by the roles and names that a person or a screen reader goes by.

import { expect, type Locator, type Page } from "@playwright/test";

export function at(page: Page) {
  return new Places(page);
}

class Places {
  private readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  conversation(): Locator {
    return this.page.getByRole("log", { name: "conversation" });
  }

  /** The id of the session that is shown. */
  session(): string {
    return /\/sessions\/([^/?#]+)/.exec(this.page.url())?.[1] ?? "";
  }

  /** The sessions that are listed. */
  sessions(): Locator {
    return this.page.getByRole("region", { name: "Sessions", exact: true }).getByRole("link");
  }

  message(): Locator {
    return this.page.getByRole("textbox", { name: "message" });
  }

  /** Says something. */
  async say(text: string): Promise<void> {
    await this.message().fill(text);
    // Nothing is sent while a turn runs.
    await expect(this.page.getByRole("button", { name: "Send" })).toBeEnabled();
    await this.message().press("Enter");
  }

  /** The open question that has a text. */
  question(text?: string): Locator {
    const all = this.page.getByRole("main").getByRole("group", { name: /^question of/i });
    return text ? all.filter({ hasText: text }) : all;
  }

  /** What says on top of every page that somebody waits. */
  waiting(): Locator {
    return this.page.getByText(/^\d+ questions? waits? for you$/);
  }

  /** The open question of another session that has a text, on top of the page. */
  questionElsewhere(text: string): Locator {
    return this.page.getByLabel("Questions that wait for you").getByRole("listitem").filter({ hasText: text });
  }

  /** The card of a batch of subagents. */
  card(): Locator {
    return this.conversation().getByRole("region", { name: /subagents/i });
  }

  /** Where a card counts. */
  head(): Locator {
    return this.card().getByRole("heading");
  }

  rows(): Locator {
    return this.card().locator("[data-child]");
  }

  /** Shows the rows that a card has folded. */
  async unfold(): Promise<void> {
    const folded = this.card().getByRole("button", { expanded: false });
    if (await folded.isVisible()) await folded.click();
  }

  /** The subagent that is opened beside the chat. */
  child(): Locator {
    return this.glass().filter({ has: this.page.getByRole("heading", { name: "Task", exact: true }) });
  }

  /** What says how it stands with the server. */
  connection(): Locator {
    return this.page.getByText(/^The server does not answer\. Trying again/);
  }

  /** Begins a session on the start page. */
  async begin(agent: string, text: string): Promise<void> {
    if (!/\/sessions\/new/.test(this.page.url())) await this.page.goto("/sessions/new");
    await this.page.getByRole("combobox", { name: "agent" }).selectOption(`home/${agent}`);
    await this.say(text);
    await this.page.waitForURL(/\/sessions\/\d{8}T/);
  }

  glass(): Locator {
    return this.page.getByRole("complementary", { name: "glass" });
  }

  /** The calls that the glass lists. */
  calls(): Locator {
    return this.glass().locator("[data-call]");
  }

  /** The refusals of a session, wherever they are shown. */
  refusals(): Locator {
    return this.page.getByRole("main").locator("[data-refused]");
  }

  /** Compares the run that is shown with that of another session. */
  async compareWith(session: string): Promise<void> {
    await this.glass().getByRole("link", { name: /^compare/i }).click();
    await this.page.getByRole("group", { name: "Second run" }).getByRole("combobox", { name: "Session" }).selectOption(session);
  }

  /** Opens the changes of a session. */
  async review(): Promise<void> {
    await this.page.getByRole("main").getByRole("link", { name: /review/i }).first().click();
    await expect(this.files().first()).toBeVisible();
  }

  /** The files that a session has changed. */
  files(): Locator {
    return this.page.getByRole("list", { name: "Changed files" }).locator("> li");
  }

  /** Decides about one file. */
  async decide(path: string, what: RegExp): Promise<void> {
    await this.files().filter({ hasText: path }).getByRole("button", { name: what }).first().click();
    await this.confirm();
  }

  /** Decides about all files. */
  async decideAll(what: RegExp): Promise<void> {
    await this.page.getByRole("main").getByRole("button", { name: new RegExp(`${what.source} all`, "i") }).click();
    await this.confirm();
  }

  /** Says yes where the page asks again. */
  private async confirm(): Promise<void> {
    const dialog = this.page.getByRole("dialog");
    if (await dialog.isVisible()) await dialog.getByRole("button").last().click();
  }

  /** The link to an agent in the list. */
  agent(slug: string): Locator {
    return this.page.getByRole("main").getByRole("link", { name: slug, exact: true });
  }

  /** An agent in the list, with all that is said of it. */
  agentRow(slug: string): Locator {
    return this.page.getByRole("main").getByRole("listitem").filter({ has: this.page.getByText(slug, { exact: true }) }).first();
  }

  /** A field of the form of an agent. */
  field(name: string): Locator {
    return this.page.getByRole("textbox", { name, exact: true });
  }

  /** The text of an agent's file, in the editor. */
  source(): Locator {
    return this.page.getByRole("textbox", { name: "file", exact: true });
  }

  /** Types a whole text in the place of the one that is there. */
  async type(text: string): Promise<void> {
    await this.source().click();
    await this.page.keyboard.press("ControlOrMeta+a");
    await this.page.keyboard.press("Delete");
    await this.page.keyboard.insertText(text);
  }

  diagnostics(): Locator {
    return this.page.getByRole("region", { name: "diagnostics" });
  }

  /** Shows what a model would be sent. */
  async preview(): Promise<void> {
    await this.page.getByRole("button", { name: "Preview" }).click();
  }

  /** A cell of the matrix of rights. */
  cell(agent: string, tool: string): Locator {
    return this.page.getByRole("gridcell", { name: new RegExp(`^${agent}, ${tool}:`) }).or(this.page.getByRole("button", { name: new RegExp(`^${agent}, ${tool}:`) })).first();
  }
}
