// Somebody who wakes the paused when their demo is killed: who is paused cannot see that it is gone, and would be there for ever.
import { spawn, type ChildProcess } from "node:child_process";

/** Remembers process ids until its input ends, which it does when this process dies, however that comes; then wakes them all. */
const script = 'while read -r pid; do pids="$pids $pid"; done; kill -CONT $pids';

export class Waker {
  #shell: ChildProcess | undefined;

  /** To be called before a process is paused. Where there is no shell, it is paused all the same. */
  remember(pid: number): void {
    this.#shell ??= startShell();
    this.#shell.stdin?.write(`${pid}\n`);
  }

  /** When nobody is paused any more, and nobody will be. */
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
