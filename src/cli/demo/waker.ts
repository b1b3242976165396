// Wakes paused workstations when their demo is killed: a paused process cannot see that, and would
// stay for ever.
import { spawn, type ChildProcess } from "node:child_process";

/**
 * Remembers process ids until its input ends, which it does when this process dies, however that
 * comes; then wakes them all.
 */
const script = 'while read -r pid; do pids="$pids $pid"; done; kill -CONT $pids';

export class Waker {
  #shell: ChildProcess | undefined;

  /**
   * To be called before a process is paused. Where there is no shell, it is paused all the same.
   */
  remember(pid: number): void {
    this.#shell ??= startShell();
    this.#shell.stdin?.write(`${pid}\n`);
  }

  /** When no process is paused any more, and none will be. */
  dismiss(): void {
    this.#shell?.kill("SIGKILL");
  }
}

function startShell(): ChildProcess {
  // In a session of its own: a Ctrl-C is meant for the demo.
  const shell = spawn("sh", ["-c", script], { stdio: ["pipe", "ignore", "ignore"], detached: true });
  shell.on("error", () => undefined);
  shell.stdin.on("error", () => undefined);
  return shell;
}
