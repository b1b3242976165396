// The built command as a process: what it is told, what it says, and how it ends.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

export const main: string = fileURLToPath(new URL("../../dist/cli/bin.cjs", import.meta.url));

export interface Ended {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface StartOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** As another user, and of its group of the same number; only root can. */
  readonly uid?: number | undefined;
}

export class HoldfastProcess {
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcess;
  readonly #written = { stdout: "", stderr: "" };
  readonly #lines: AsyncIterator<string>;

  constructor(args: readonly string[], { cwd, env = {}, uid }: StartOptions = {}) {
    const { HOLDFAST_STORE: _, ...inherited } = process.env;
    const child = spawn(process.execPath, [main, ...args], {
      stdio: ["pipe", "pipe", "pipe"],
      cwd,
      uid,
      gid: uid,
      env: { ...inherited, ...env },
    });
    this.#child = child;
    // What it runs has inherited its files: a command that was left alone sees the end of its
    // input.
    onTestFinished(() => {
      child.kill("SIGKILL");
      child.stdin.destroy();
    });
    // It may have ended before it read anything.
    child.stdin.on("error", () => undefined);
    const written = this.#written;
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    child.stdout.setEncoding("utf8").on("data", (text: string) => (written.stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (written.stderr += text));
    this.ended = new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (exitCode, signal) => resolve({ exitCode, signal, ...written }));
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** The next line on its stdout. */
  async hear(): Promise<string> {
    const { done, value } = await this.#lines.next();
    if (done) throw new Error(`it said nothing more: ${JSON.stringify(await this.ended)}`);
    return value;
  }

  /** What it has said on its stderr so far. */
  get stderr(): string {
    return this.#written.stderr;
  }

  /** Resolves as soon as this stands on its stderr. */
  async hasSaid(text: string): Promise<void> {
    const ended = this.ended.then((end) => {
      throw new Error(`it never said ${text}: ${JSON.stringify(end)}`);
    });
    while (!this.#written.stderr.includes(text))
      await Promise.race([once(this.#child.stderr ?? this.#child, "data"), ended]);
    // From here on its end is no failure.
    ended.catch(() => undefined);
  }

  tell(text: string): void {
    this.#child.stdin?.write(text);
  }

  /** The end of its input. */
  endInput(): void {
    this.#child.stdin?.end();
  }

  /** What it writes from now on, it writes into a broken pipe. */
  stopListening(): void {
    this.#child.stdout?.destroy();
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** When this process has exited; what it ran may still have its pipes open. */
  async exited(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    await new Promise((resolve) => this.#child.once("exit", resolve));
  }
}

export async function holdfast(args: readonly string[], options?: StartOptions): Promise<Ended> {
  const process = new HoldfastProcess(args, options);
  process.endInput();
  return await process.ended;
}
