// Runs a command under a lock: it gets our signals, our terminal and our open files, and its exit
// code becomes ours.
import { spawn, type ChildProcess } from "node:child_process";
import { constants } from "node:os";
import { commandOnWindows, type WindowsCommand } from "../windows/batch-file.ts";
import { endTree } from "../windows/process-tree.ts";

export interface GuardedCommandOptions {
  readonly environment: Readonly<Record<string, string>>;
  /** If it aborts, the command is asked to end by SIGTERM, and awaited. */
  readonly lost: AbortSignal;
}

/** Thrown if the command could not be started. The exit code is the one that a shell would return. */
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
 * A terminal sends these signals to all processes in its foreground, including the command. They
 * are not passed on: sent twice, they often mean "now, without cleaning up".
 */
const fromKeyboard: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT"];
const isWindows = process.platform === "win32";

/** Returns the exit code of the command; 128 + n if signal n ended it, as in shells. Throws NotStarted. */
export async function runGuarded(words: readonly string[], options: GuardedCommandOptions): Promise<number> {
  const [command = ""] = words;
  const { file, args, isVerbatim } = await startable(words);
  const startedMs = Date.now();
  let child: ChildProcess | undefined;
  const forward = (name: NodeJS.Signals): void => {
    // Signals are not passed on under Windows: its console notifies every process directly, and
    // `kill` would end the command without asking.
    if (isWindows || (hasTerminal() && fromKeyboard.includes(name))) return;
    child?.kill(name);
  };
  const end = (): void => {
    // A batch file runs in a shell, whose end would leave its commands running.
    if (isWindows && child?.pid !== undefined) void endTree(child.pid, startedMs);
    else child?.kill("SIGTERM");
  };
  // The listeners come before the start: a signal in between would end this process, and leave the
  // command running without the lock.
  for (const name of forwarded) process.on(name, forward);
  options.lost.addEventListener("abort", end);
  try {
    child = spawn(file, args, {
      stdio: "inherit",
      env: { ...process.env, ...options.environment },
      windowsVerbatimArguments: isVerbatim,
    });
    if (options.lost.aborted) end();
    return await endOf(child, command);
  } finally {
    options.lost.removeEventListener("abort", end);
    for (const name of forwarded) process.off(name, forward);
  }
}

async function startable(words: readonly string[]): Promise<WindowsCommand> {
  const [file = "", ...args] = words;
  if (!isWindows) return { file, args, isVerbatim: false };
  try {
    return await commandOnWindows(words);
  } catch (error) {
    throw new NotStarted(file, (error as Error).message);
  }
}

function endOf(child: ChildProcess, command: string): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("error", (error: NodeJS.ErrnoException) => {
      // "error" also means that a signal could not be sent. Then the command exists, and its end is
      // awaited.
      if (child.pid === undefined) reject(new NotStarted(command, error.code));
    });
    child.once("exit", (code, signal) => resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal])));
  });
}

function hasTerminal(): boolean {
  return process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
}
