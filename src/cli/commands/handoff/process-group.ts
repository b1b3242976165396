// Runs a command so that it can be ended together with everything that it started: first it is
// asked to end, then killed.
import type { ChildProcess } from "node:child_process";
import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { endTree } from "../../windows/process-tree.ts";

export interface GroupTimes {
  /** A command that does not end when asked is killed after this time. Default 5 s. */
  readonly graceMs?: number;
  /**
   * How long to wait after the kill for processes that cannot be killed or have left the group. Default 1 s; on Windows,
   * where the group has to be found first, 10 s.
   */
  readonly leaveMs?: number;
}

export interface GroupEnd {
  /** Exit code of the first process; 128 + n if signal n ended it. */
  readonly exitCode: number;
  /**
   * True if the group was asked to end before its first process had ended. Then the exit code
   * proves nothing.
   */
  readonly wasCut: boolean;
}

/** How often to check whether the group is empty: no event reports that. */
const everyMs = 20;

const isWindows = process.platform === "win32";
const leaveMsDefault = isWindows ? 10_000 : 1_000;
/** The group is made a moment after its first process was started. */
const madeWithinMs = 1_000;

export class ProcessGroup {
  readonly #child: ChildProcess;
  readonly #graceMs: number;
  readonly #leaveMs: number;
  readonly #startedMs = Date.now() - madeWithinMs;
  #timer: NodeJS.Timeout | undefined;
  #hasExited = false;
  #wasCut = false;
  #isLeft = false;
  #isOver = false;

  /** `child` was started with `detached`, so it leads its own group, except on Windows. */
  constructor(child: ChildProcess, { graceMs = 5_000, leaveMs = leaveMsDefault }: GroupTimes = {}) {
    this.#child = child;
    this.#graceMs = graceMs;
    this.#leaveMs = leaveMs;
    child.once("exit", () => (this.#hasExited = true));
  }

  /**
   * Resolves when the first process has ended and no process of the group writes to us any more. If
   * the group was asked to end, also waits until it is empty, because another command gets the
   * ticket next.
   */
  async ended(): Promise<GroupEnd> {
    const { pid } = this.#child;
    const exitCode = await new Promise<number>((resolve) =>
      // Waits for `close` and not for `exit`: the last output may still be in the pipe.
      this.#child.once("close", (code, signal) =>
        resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])),
      ),
    );
    while (this.#timer !== undefined && !this.#isLeft && isThere(pid)) await sleep(everyMs);
    this.#isOver = true;
    clearTimeout(this.#timer);
    return { exitCode, wasCut: this.#wasCut };
  }

  /** True if its first process has ended; others may still run. */
  get hasExited(): boolean {
    return this.#hasExited;
  }

  /** Asks the whole group to end. Kills it if it has not ended after a while. */
  end(): void {
    if (this.#isOver || this.#timer !== undefined) return;
    this.#wasCut ||= !this.#hasExited;
    // A Windows console program cannot be asked.
    if (!isWindows) this.#signal("SIGTERM");
    this.#timer = setTimeout(() => this.kill(), isWindows ? 0 : this.#graceMs);
  }

  kill(): void {
    if (this.#isOver) return;
    this.#wasCut ||= !this.#hasExited;
    this.#signal("SIGKILL");
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#leave(), this.#leaveMs);
  }

  /** Closes our pipes: a process that left the group may keep them open. */
  #leave(): void {
    this.#isLeft = true;
    for (const pipe of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) pipe?.destroy();
  }

  /** The group keeps the number of its first process, even after that has ended. */
  #signal(name: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    if (isWindows) return void endTree(pid, this.#startedMs);
    try {
      process.kill(-pid, name);
    } catch {
      // The group ended meanwhile.
    }
  }
}

/** True if the group has a process. Windows does not identify a group by number. */
function isThere(pid: number | undefined): boolean {
  if (pid === undefined || isWindows) return false;
  try {
    return process.kill(-pid, 0);
  } catch (error) {
    // EPERM: the group has a process of another user.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
