// One workstation as its parent sees it: a process that can be killed, paused, started again, and
// that says what it has done.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Receipt } from "./stations/station.ts";

const main = fileURLToPath(new URL("../main.js", import.meta.url));
const endMsMax = 5000;
const stderrLengthMax = 2000;

export interface WorkstationProcessOptions {
  readonly name: string;
  readonly directory: string;
  readonly sabotage: boolean;
  readonly onReceipt: (receipt: Receipt) => void;
  /** It ended, and the demo had not ended it. */
  readonly onFailure: (why: string) => void;
  /** Called before each pause: a process that is paused cannot look after itself. */
  readonly onPause: (pid: number) => void;
}

/** Windows has no SIGSTOP: there nothing is paused. */
export const canPause: boolean = process.platform !== "win32";

export class WorkstationProcess {
  readonly #options: WorkstationProcessOptions;
  #process: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #isEnding = false;
  #isPaused = false;
  #isAtWork = false;

  constructor(options: WorkstationProcessOptions) {
    this.#options = options;
  }

  get isSaboteur(): boolean {
    return this.#options.sabotage;
  }
  get isPaused(): boolean {
    return this.#isPaused;
  }
  /** It runs, and has got something done since it was started. */
  get isAtWork(): boolean {
    return this.#isAtWork;
  }

  start(): void {
    const { name, directory, sabotage } = this.#options;
    const args = ["demo", "--join", "--tied", "--json", "--dir", directory, "--name", name];
    if (sabotage) args.push("--sabotage");
    // The channel carries nothing: it breaks when this process dies, and then the workstation ends
    // too.
    const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe", "ipc"] });
    this.#process = child;
    this.#isAtWork = false;
    this.#isEnding = false;
    this.#ended = this.#follow(child);
  }

  /**
   * SIGKILL: no time for a last word. Resolves when it is gone and all that it had said was heard.
   */
  async kill(): Promise<void> {
    this.#isEnding = true;
    this.killNow();
    await this.#ended;
  }

  /** For a parent that is about to end itself. */
  killNow(): void {
    this.resume();
    this.#process?.kill("SIGKILL");
  }

  /** SIGSTOP: like a laptop that is closed in the middle of a sale. */
  pause(): void {
    if (!canPause || this.#process?.pid === undefined) return;
    this.#options.onPause(this.#process.pid);
    this.#isPaused = this.#process.kill("SIGSTOP");
  }

  /** SIGCONT. */
  resume(): void {
    if (this.#isPaused) this.#process?.kill("SIGCONT");
    this.#isPaused = false;
  }

  /** Asks it to finish what it is doing; kills it when that takes too long. */
  async end(): Promise<void> {
    this.#isEnding = true;
    this.resume();
    this.#process?.kill("SIGTERM");
    const timer = setTimeout(() => this.killNow(), endMsMax);
    await this.#ended;
    clearTimeout(timer);
  }

  async #follow(child: ChildProcess): Promise<void> {
    let stderr = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr = (stderr + text).slice(-stderrLengthMax)));
    if (child.stdout !== null)
      createInterface({ input: child.stdout }).on("line", (line) => {
        this.#isAtWork = true;
        this.#options.onReceipt(JSON.parse(line) as Receipt);
      });
    // Not "exit": what is still in its pipe was said before it died.
    const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
    this.#process = undefined;
    this.#isPaused = false;
    this.#isAtWork = false;
    if (!this.#isEnding)
      this.#options.onFailure(`${this.#options.name} ended by itself (${code ?? signal}): ${stderr.trim()}`);
  }
}
