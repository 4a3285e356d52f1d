// What no page of any test may do: run a script that is not its own, break its own policy, throw, or ask
// anybody but its own server for anything.

import type { BrowserContext, Page } from "@playwright/test";

declare global {
  interface Window {
    /** Set by hostile text that got to run. */
    pwned?: unknown;
    __violations?: string[];
  }
}

export class Guard {
  readonly breaches: string[] = [];
  private readonly origins = new Set<string>();
  private expected: RegExp[] = [];
  /** Questions of the page itself, which are answered with no. */
  private questions: RegExp[] = [];

  /** Watches all pages of a context. */
  static async over(context: BrowserContext, origin: string): Promise<Guard> {
    const guard = new Guard();
    guard.allow(origin);
    await context.addInitScript(() => {
      document.addEventListener("securitypolicyviolation", (event) => {
        (window.__violations ??= []).push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
        console.error(`policy violation: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
      });
    });
    context.on("request", (request) => {
      const url = new URL(request.url());
      if (["data:", "blob:"].includes(url.protocol) || guard.origins.has(url.origin)) return;
      guard.breaches.push(`asked another origin: ${request.url().slice(0, 200)}`);
    });
    context.on("page", (page) => guard.watch(page));
    context.on("weberror", (error) => guard.breaches.push(`threw: ${error.error().message}`));
    return guard;
  }

  /** One more origin that is the page's own. */
  allow(origin: string): void {
    this.origins.add(new URL(origin).origin);
  }

  /** Errors in the console that a test brings about itself, such as a server that is away. */
  expect(...errors: RegExp[]): void {
    this.expected.push(...errors);
  }

  /** Questions that the page asks in a dialog of the browser's; they are answered with no. */
  asked(...questions: RegExp[]): void {
    this.questions.push(...questions);
  }

  private watch(page: Page): void {
    page.on("dialog", (dialog) => {
      // A page may ask before it is left; nothing of it comes from a text.
      const own = dialog.type() === "beforeunload" || (dialog.type() === "confirm" && this.questions.some((one) => one.test(dialog.message())));
      if (!own) this.breaches.push(`opened a dialog: ${dialog.message()}`);
      void dialog.dismiss().catch(() => undefined);
    });
    page.on("popup", (popup) => this.breaches.push(`opened a window: ${popup.url()}`));
    page.on("download", (download) => {
      if (!this.origins.has(new URL(download.url().replace(/^blob:/, "")).origin))
        this.breaches.push(`downloaded from elsewhere: ${download.url()}`);
    });
    page.on("websocket", (socket) => {
      const { host } = new URL(socket.url());
      if (![...this.origins].some((origin) => new URL(origin).host === host)) this.breaches.push(`opened a socket elsewhere: ${socket.url()}`);
    });
    page.on("console", (message) => {
      if (message.type() !== "error") return;
      const text = message.text();
      if (FAILED_CALL.test(text) || this.expected.some((known) => known.test(text))) return;
      this.breaches.push(`console: ${text.slice(0, 500)}`);
    });
  }
}

/** The browser's own line for each answer above 399 and each connection that fails, which the page itself
 * deals with. */
const FAILED_CALL = /^Failed to load resource: (the server responded with a status of|net::ERR_)|^WebSocket connection to '\S+' failed: (Error in connection establishment|Error during WebSocket handshake|WebSocket is closed|Connection closed)/;
