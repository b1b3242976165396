// Commands and servers of the bed's own machine.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";

/** Runs a command to its end; throws with what it said when it fails. */
export function run(line: string, input = ""): string {
  const [command = "", ...args] = line.split(" ");
  try {
    return execFileSync(command, args, { encoding: "utf8", input, stdio: ["pipe", "pipe", "pipe"] });
  } catch (error) {
    const said = error instanceof Error && "stderr" in error ? String(error.stderr).trim() : "";
    throw new Error(`"${line}" failed: ${said}`, { cause: error });
  }
}

/** A process in a group of its own, that writes to a log. */
export class Daemon {
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;
  #isOver = false;

  constructor(command: string, args: readonly string[], options: { readonly log: string; readonly env?: object }) {
    const log = openSync(options.log, "a");
    this.#process = spawn(command, [...args], {
      stdio: ["ignore", log, log],
      detached: true,
      env: { ...process.env, ...options.env },
    });
    closeSync(log);
    this.#ended = once(this.#process, "exit").then(
      () => (this.#isOver = true),
      () => (this.#isOver = true),
    );
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * SIGSTOP and SIGCONT, to the process itself only: a guest traces the others of its group, and
   * takes a signal to one of them for a fault of it.
   */
  stop(): void {
    this.#process.kill("SIGSTOP");
  }
  continue(): void {
    this.#process.kill("SIGCONT");
  }

  /** The whole group: what a guest or a server leaves behind would go on by itself. */
  async kill(): Promise<void> {
    try {
      if (!this.#isOver && this.#process.pid !== undefined) process.kill(-this.#process.pid, "SIGKILL");
    } catch {
      // It has just ended.
    }
    await this.#ended;
  }
}

/** Waits until `check` gives something. */
export async function until<T>(
  what: string,
  msMax: number,
  check: () => Promise<T | undefined> | T | undefined,
): Promise<T> {
  const deadlineMs = performance.now() + msMax;
  for (;;) {
    const found = await check();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > deadlineMs) throw new Error(`Waited ${msMax} ms in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
