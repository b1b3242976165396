// One child process under a test's control: it reports, and the test kills, stops, continues and restarts it.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { finishOrder, goOnOrder } from "./child-side.ts";

const stderrLengthMax = 4000;

export interface ChildOptions {
  readonly name: string;
  /** A compiled module: see compiled-module.ts. */
  readonly module: string;
  readonly args: readonly string[];
  readonly onReport: (child: Child, value: unknown) => void;
  readonly onEnd: (child: Child, ending: Ending) => void;
}

/** How one process of a child ended. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** True if the parent ended it, by a kill or by telling it to finish. */
  readonly wanted: boolean;
  /** The last part of its stderr. */
  readonly stderr: string;
}

/**
 * SIGSTOP and SIGCONT exist only on Linux and macOS. On Windows no process is ever stopped, and a kill is
 * TerminateProcess.
 */
export const canStop: boolean = process.platform !== "win32";

export class Child {
  readonly #options: ChildOptions;
  #process: ChildProcess | undefined;
  #ended: Promise<Ending> | undefined;
  #isStopped = false;
  #isWanted = false;
  #starts = 0;

  constructor(options: ChildOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }
  /** The number of times that the child was started. */
  get starts(): number {
    return this.#starts;
  }
  get isRunning(): boolean {
    return this.#process !== undefined;
  }
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Starts the child, or restarts it after it has ended. The name stays the same, but the process is new. */
  start(): void {
    if (this.#process !== undefined) throw new Error(`${this.name} is running already.`);
    const { module, args } = this.#options;
    // The IPC channel is a lifeline: it breaks when the parent dies, however that happens.
    const child = spawn(process.execPath, [module, ...args], { stdio: ["ignore", "pipe", "pipe", "ipc"] });
    this.#process = child;
    this.#isStopped = false;
    this.#isWanted = false;
    this.#starts++;
    this.#ended = this.#follow(child);
  }

  /** Sends SIGKILL, even to a stopped child. Resolves when the process is gone and all its reports have arrived. */
  async kill(): Promise<void> {
    this.#isWanted = true;
    this.killNow();
    await this.#ended;
  }

  /**
   * Like `kill`, for a caller that cannot wait. It continues the process first: on some systems a stopped process may
   * outlive its killer.
   */
  killNow(): void {
    this.cont();
    this.#process?.kill("SIGKILL");
  }

  /** Sends SIGSTOP: the child stops in the middle of whatever it does. Does nothing on Windows. */
  stop(): void {
    if (this.#process === undefined || !canStop) return;
    this.#isStopped = this.#process.kill("SIGSTOP");
  }

  /** Sends SIGCONT if the child is stopped. */
  cont(): void {
    if (this.#isStopped) this.#process?.kill("SIGCONT");
    this.#isStopped = false;
  }

  /** Tells the child to continue after it has reported that it waits. */
  goOn(): void {
    this.#process?.send(goOnOrder, () => undefined);
  }

  /** Tells the child to finish. Returns false if it did not within `ms`, and was killed. */
  async finish(ms: number): Promise<boolean> {
    if (this.#process === undefined) return true;
    this.cont();
    this.#isWanted = true;
    // The child may already be exiting. Then a failed send does not matter.
    this.#process.send(finishOrder, () => undefined);
    let inTime = true;
    const timer = setTimeout(() => {
      inTime = false;
      this.killNow();
    }, ms);
    await this.#ended;
    clearTimeout(timer);
    return inTime;
  }

  async #follow(child: ChildProcess): Promise<Ending> {
    let stderr = "";
    let nonsense = false;
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (stderr = (stderr + text).slice(-stderrLengthMax)));
    if (child.stdout !== null)
      createInterface({ input: child.stdout }).on("line", (line) => {
        const value = parse(line);
        if (value !== undefined) return this.#options.onReport(this, value);
        nonsense = true;
        stderr += `It wrote to stdout what is no report: ${line.slice(0, 200)}\n`;
      });
    // Waits for "close", not "exit": the pipe may still hold reports that the child made before it died.
    const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
    this.#process = undefined;
    this.#isStopped = false;
    // A child that failed just before the parent would have ended it counts as failed.
    const wanted = this.#isWanted && (signal === "SIGKILL" || code === 0) && !nonsense;
    const ending: Ending = { code, signal, wanted, stderr };
    this.#options.onEnd(this, ending);
    return ending;
  }
}

/** Returns undefined if the text is not JSON. */
function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
