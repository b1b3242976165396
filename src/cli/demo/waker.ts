// Wakes paused workstations if their demo is killed: a paused process cannot notice that, and would
// never end.
import { spawn, type ChildProcess } from "node:child_process";

/**
 * The script of the waker. It collects process ids from its input until that ends, which happens
 * when this process dies in any way. Then it wakes them all.
 */
const script = 'while read -r pid; do pids="$pids $pid"; done; kill -CONT $pids';

export class Waker {
  #shell: ChildProcess | undefined;

  /** Call it before pausing a process. On a system without a shell, there is no waker. */
  remember(pid: number): void {
    this.#shell ??= startShell();
    this.#shell.stdin?.write(`${pid}\n`);
  }

  /** Call it when no process is paused, and none will be paused any more. */
  dismiss(): void {
    this.#shell?.kill("SIGKILL");
  }
}

function startShell(): ChildProcess {
  // In a session of its own, which Ctrl-C does not reach.
  const shell = spawn("sh", ["-c", script], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  shell.on("error", () => undefined);
  shell.stdin.on("error", () => undefined);
  return shell;
}
