// One child process in the hands of a test: what it reports, and how it is killed, stopped,
// continued and started again.
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
  /** We ended it: by a kill, or by telling it to finish. */
  readonly wanted: boolean;
  /** The end of what it wrote there. */
  readonly stderr: string;
}

/**
 * SIGSTOP and SIGCONT exist on Linux and macOS only: on Windows nothing is ever stopped, and a kill
 * is TerminateProcess.
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
  /** How often it was started. */
  get starts(): number {
    return this.#starts;
  }
  get isRunning(): boolean {
    return this.#process !== undefined;
  }
  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** Starts it, again if it has ended. Its name stays the same, its process is a new one. */
  start(): void {
    if (this.#process !== undefined) throw new Error(`${this.name} is running already.`);
    const { module, args } = this.#options;
    // The channel is a lifeline: it breaks when this process dies, however that happens.
    const child = spawn(process.execPath, [module, ...args], { stdio: ["ignore", "pipe", "pipe", "ipc"] });
    this.#process = child;
    this.#isStopped = false;
    this.#isWanted = false;
    this.#starts++;
    this.#ended = this.#follow(child);
  }

  /**
   * SIGKILL, also while it is stopped. Resolves when nothing of the process is left to run and all
   * that it said was heard.
   */
  async kill(): Promise<void> {
    this.#isWanted = true;
    this.killNow();
    await this.#ended;
  }

  /**
   * As `kill`, for a caller that cannot wait. Continues the process first: a stopped one may
   * outlive its killer on some systems.
   */
  killNow(): void {
    this.cont();
    this.#process?.kill("SIGKILL");
  }

  /** SIGSTOP: it stands still in the middle of whatever it does. Nothing on Windows. */
  stop(): void {
    if (this.#process === undefined || !canStop) return;
    this.#isStopped = this.#process.kill("SIGSTOP");
  }

  /** SIGCONT. */
  cont(): void {
    if (this.#isStopped) this.#process?.kill("SIGCONT");
    this.#isStopped = false;
  }

  /** Tells it to go on, when it has reported that it stands still. */
  goOn(): void {
    this.#process?.send(goOnOrder, () => undefined);
  }

  /** Tells it to end by itself. False when it did not within `ms`: then it was killed. */
  async finish(ms: number): Promise<boolean> {
    if (this.#process === undefined) return true;
    this.cont();
    this.#isWanted = true;
    // It may be on its way out already; then it need not be told.
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
    // Not "exit": what is still in its pipe was said before it died.
    const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
    this.#process = undefined;
    this.#isStopped = false;
    // One that failed just before we would have ended it has failed.
    const wanted = this.#isWanted && (signal === "SIGKILL" || code === 0) && !nonsense;
    const ending: Ending = { code, signal, wanted, stderr };
    this.#options.onEnd(this, ending);
    return ending;
  }
}

/** Undefined when it is not JSON. */
function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
