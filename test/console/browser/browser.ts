// A Chromium of its own for the tests of the console, and the processes of a store that it looks at.
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium, type BrowserContext, type Page } from "playwright-core";

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const args = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export class Browser {
  /** Messages of the page that are errors, and requests to other hosts. Empty in a sound page. */
  readonly complaints: string[] = [];
  readonly #context: BrowserContext;
  readonly #profile: string;

  private constructor(context: BrowserContext, profile: string) {
    this.#context = context;
    this.#profile = profile;
  }

  static async open(): Promise<Browser> {
    const profile = mkdtempSync(join(tmpdir(), "holdfast-chromium-"));
    const context = await chromium.launchPersistentContext(profile, { executablePath, args, headless: true });
    return new Browser(context, profile);
  }

  async page({ width = 1440, theme = "light" }: { width?: number; theme?: "light" | "dark" } = {}): Promise<Page> {
    const page = await this.#context.newPage();
    page.setDefaultTimeout(20_000);
    await page.setViewportSize({ width, height: 1000 });
    await page.emulateMedia({ colorScheme: theme });
    page.on("pageerror", (error) => this.complaints.push(String(error)));
    page.on("dialog", (dialog) => {
      this.complaints.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => {
      const { hostname, protocol } = new URL(request.url());
      if (protocol !== "data:" && hostname !== "127.0.0.1") this.complaints.push(`a request to ${request.url()}`);
    });
    page.on("console", (message) => {
      // A refused request is what some tests are about.
      if (message.type() === "error" && !/status of 4\d\d|ERR_/.test(message.text()))
        this.complaints.push(message.text());
    });
    return page;
  }

  async forgetCookies(): Promise<void> {
    await this.#context.clearCookies();
  }

  async close(): Promise<void> {
    await this.#context.close();
    rmSync(this.#profile, { recursive: true, force: true });
  }
}

const workshop = fileURLToPath(new URL("workshop.mjs", import.meta.url));

/** Starts a process on the store, and waits until it has done its first work. */
export async function startWorkshop(directory: string, role: "first" | "second" | "worker"): Promise<ChildProcess> {
  const child = fork(workshop, [directory, role]);
  process.once("exit", () => child.kill("SIGKILL"));
  const [word] = (await Promise.race([once(child, "message"), once(child, "exit")])) as [unknown];
  if (word !== "ready") throw new Error(`The process ${role} ended with ${String(word)}.`);
  return child;
}
