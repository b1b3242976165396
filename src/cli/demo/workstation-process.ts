// A workstation from the point of view of its parent: a process that can be killed, paused and
// restarted, and that reports its work.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Receipt } from "./stations/station.ts";

const main = fileURLToPath(new URL("../bin.cjs", import.meta.url));
const endMsMax = 5000;
const stderrLengthMax = 2000;

export interface WorkstationProcessOptions {
  readonly name: string;
  readonly directory: string;
  readonly sabotage: boolean;
  readonly onReceipt: (receipt: Receipt) => void;
  /** Called if the process ended although the demo had not ended it. */
  readonly onFailure: (why: string) => void;
  /** Called before each pause: a paused process cannot look after itself. */
  readonly onPause: (pid: number) => void;
}

/** Windows has no SIGSTOP: nothing is paused there. */
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
  /** True if the process runs and has done some work since it started. */
  get isAtWork(): boolean {
    return this.#isAtWork;
  }

  start(): void {
    const { name, directory, sabotage } = this.#options;
    const args = ["demo", "--join", "--tied", "--json", "--dir", directory, "--name", name];
    if (sabotage) args.push("--sabotage");
    // The channel carries no messages. It breaks when this process dies, which tells the
    // workstation to end.
    const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe", "ipc"] });
    this.#process = child;
    this.#isAtWork = false;
    this.#isEnding = false;
    this.#ended = this.#follow(child);
  }

  /** Sends SIGKILL. Resolves when the process has ended and all its output was read. */
  async kill(): Promise<void> {
    this.#isEnding = true;
    this.killNow();
    await this.#ended;
  }

  /** Kills the process without waiting, for a parent that is about to end. */
  killNow(): void {
    this.resume();
    this.#process?.kill("SIGKILL");
  }

  /** Sends SIGSTOP: like a laptop that is closed in the middle of a sale. */
  pause(): void {
    if (!canPause || this.#process?.pid === undefined) return;
    this.#options.onPause(this.#process.pid);
    this.#isPaused = this.#process.kill("SIGSTOP");
  }

  /** Sends SIGCONT. */
  resume(): void {
    if (this.#isPaused) this.#process?.kill("SIGCONT");
    this.#isPaused = false;
  }

  /** Asks it to finish its current work; kills it if that takes too long. */
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
    // "close" and not "exit": output that was written before the end may still be in the pipe.
    const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
    this.#process = undefined;
    this.#isPaused = false;
    this.#isAtWork = false;
    if (!this.#isEnding)
      this.#options.onFailure(`${this.#options.name} ended unexpectedly (${code ?? signal}): ${stderr.trim()}`);
  }
}
