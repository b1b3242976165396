// A command that runs under a lock: it gets our signals, our terminal and our files, and we get its
// exit code.
import { spawn, type ChildProcess } from "node:child_process";
import { constants } from "node:os";

export interface GuardedCommandOptions {
  readonly environment: Readonly<Record<string, string>>;
  /** When it aborts, the command is asked to end (SIGTERM), and waited for. */
  readonly lost: AbortSignal;
}

/** It could not be started. The exit code is what a shell would give. */
export class NotStarted extends Error {
  override readonly name: string = "NotStarted";
  readonly exitCode: number;

  constructor(command: string, errno: string | undefined) {
    super(errno === "ENOENT" ? `${command}: not found` : `${command}: cannot be run (${errno ?? "unknown error"})`);
    this.exitCode = errno === "ENOENT" ? 127 : 126;
  }
}

const forwarded = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"] as const;
/**
 * What a terminal sends to all processes in its foreground, the command too. Sent twice, it often
 * means "now, without cleaning up".
 */
const fromKeyboard: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT"];
const isWindows = process.platform === "win32";

/**
 * The exit code of the command; 128 + n when signal n has ended it, as shells have it. NotStarted.
 */
export async function runGuarded(words: readonly string[], options: GuardedCommandOptions): Promise<number> {
  const [command = "", ...args] = words;
  let child: ChildProcess | undefined;
  const forward = (name: NodeJS.Signals): void => {
    // Windows has no signals: its console tells every process by itself, and `kill` would end the
    // command without asking.
    if (isWindows || (hasTerminal() && fromKeyboard.includes(name))) return;
    child?.kill(name);
  };
  const end = (): void => void child?.kill("SIGTERM");
  // Before it starts: a signal that came between would end us, and leave it running without the
  // lock.
  for (const name of forwarded) process.on(name, forward);
  options.lost.addEventListener("abort", end);
  try {
    child = spawn(command, args, { stdio: "inherit", env: { ...process.env, ...options.environment } });
    if (options.lost.aborted) end();
    return await endOf(child, command);
  } finally {
    options.lost.removeEventListener("abort", end);
    for (const name of forwarded) process.off(name, forward);
  }
}

function endOf(child: ChildProcess, command: string): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("error", (error: NodeJS.ErrnoException) => {
      // Also for a signal that could not be sent; then the command is there, and its end is waited
      // for.
      if (child.pid === undefined) reject(new NotStarted(command, error.code));
    });
    child.once("exit", (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
}

function hasTerminal(): boolean {
  return process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
}
