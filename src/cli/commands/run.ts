// The command `holdfast run`: like flock(1), runs a command under a lock and returns its exit code.
import { InvalidArgumentError, Option, type Command } from "commander";
import { isHoldfastError } from "../../index.ts";
import { findPathLock, semaphoreLock, storelessLock, type ChosenLock, type LockWish } from "../locking/chosen-lock.ts";
import { parseDuration } from "../duration.ts";
import { exitCodes } from "../exit-codes.ts";
import { explain } from "../locking/explained-wait.ts";
import { reportFailure } from "../failure.ts";
import { NotStarted, runGuarded } from "../locking/guarded-command.ts";
import { endHelp } from "../help.ts";
import { noCreateOption } from "../part-verb.ts";
import type { Run } from "../run.ts";

interface RunFlags {
  readonly lock?: string;
  readonly store?: string;
  readonly semaphore?: string;
  readonly tree?: boolean;
  readonly shared?: boolean;
  readonly timeout?: number;
  readonly nonblock?: boolean;
  readonly busyExit: number;
  /** False for `--no-create`. */
  readonly create: boolean;
}

export function registerRun(command: Command, run: Run): void {
  command
    .description(
      "Acquires a lock, runs CMD, releases the lock, and exits with the exit code of CMD. Guide: docs/locks.md.",
    )
    .argument("<CMD...>", "the command with its arguments and options")
    .passThroughOptions()
    .option("--lock <PATH>", "the path to lock; it need not exist")
    .option(
      "--store <DIR>",
      "the store; created in an existing directory (default: $HOLDFAST_STORE, or the nearest store above PATH)",
    )
    .addOption(
      new Option("--semaphore <FILE>", "lock this semaphore file instead of a path in a store").conflicts("store"),
    )
    .addOption(noCreateOption("store"))
    .option("--tree", "lock PATH and everything below it")
    .option("--shared", "lock it for reading: shared locks do not exclude each other")
    .option("--timeout <duration>", "how long to wait: 30s, 500ms, 2m (default: no limit)", parseDuration)
    .addOption(new Option("-n, --nonblock", "do not wait").conflicts("timeout"))
    .addOption(
      new Option("--busy-exit <N>", "the exit code if the lock is busy")
        .argParser(parseExitCode)
        .default(exitCodes.tryAgain),
    )
    .action(async (words: string[], flags: RunFlags) => {
      await using lock = await chooseLock(flags, command, run);
      await runUnder(lock, words, flags, run);
    });
  endHelp(command, {
    examples: [
      "holdfast run --lock /mnt/shop/stock.csv --timeout 30s -- ./update-stock.sh",
      "holdfast run --semaphore /var/lock/backup.lock -n -- tar czf /backup/home.tgz /home",
    ],
    exits: {
      done: "CMD exited with 0",
      failed: "the lock could not be acquired or released: no permission, disk full",
      wrongUsage: "wrong usage, or PATH cannot be locked",
      missing: "the directory of the lock is missing; with --no-create: there is no store in DIR",
      notHeld: "the lock was lost while CMD ran",
      verificationFailed: "the store's file system cannot be used",
      tryAgain: "busy or timed out (--busy-exit changes it): CMD was not run, try again",
    },
    ownExits: { 126: "CMD cannot be run", 127: "CMD was not found" },
  });
}

async function chooseLock(flags: RunFlags, command: Command, run: Run): Promise<ChosenLock> {
  const { lock: path, semaphore, tree = false, shared = false } = flags;
  const warn = (risk: string): void => run.output.warning({ name: "HoldfastWarning", message: risk });
  if (semaphore !== undefined) {
    if (tree || shared) command.error("error: a semaphore file is for one holder of one thing: no --tree, no --shared");
    return semaphoreLock(semaphore, warn);
  }
  if (path === undefined || path === "") command.error("error: say what to lock: --lock PATH or --semaphore FILE");
  const wish: LockWish = {
    path,
    store: flags.store ?? (process.env["HOLDFAST_STORE"] || undefined),
    tree,
    shared,
    create: flags.create,
  };
  const chosen = await findPathLock(wish, run);
  if (chosen !== undefined) return chosen;
  // Refuses instead of silently acquiring a weaker lock.
  if (tree || shared) command.error(`error: --tree and --shared need a store, and there is none above ${path}: name it with --store`); // prettier-ignore
  const storeless = await storelessLock(wish, warn, run);
  run.output.note(`holdfast: no store above ${path}: locking the semaphore file ${storeless.file}`);
  return storeless;
}

async function runUnder(lock: ChosenLock, words: readonly string[], flags: RunFlags, run: Run): Promise<void> {
  const timeoutMs = flags.nonblock ? 0 : (flags.timeout ?? Infinity);
  // The tag omits the arguments of the command: others can read it, and arguments may be secrets.
  const waiting = { timeoutMs, signal: run.signal, tag: words[0] ?? "" };
  const { name: what } = lock;
  const findBlocking = lock.findBlocking.bind(lock);
  const wait = { what, findBlocking, wait: () => lock.acquire(waiting), isCertain: true };
  const taken = await explain(run, wait).catch((error: unknown) => {
    if (!isHoldfastError(error, "LOCK_TIMEOUT")) throw error;
    run.exitCode = reportFailure(error, run.output, { exitCode: flags.busyExit });
    return undefined;
  });
  if (taken === undefined) return;
  let isToldLost = false;
  const tellLost = (error: unknown): void => {
    if (!isToldLost) run.exitCode = reportFailure(error, run.output);
    isToldLost = true;
  };
  const { signal: lost, environment } = taken;
  lost.addEventListener("abort", () => tellLost(lost.reason));
  try {
    run.signal.throwIfAborted();
    const exitCode = await runGuarded(words, { environment, lost });
    if (!isToldLost) run.exitCode = exitCode;
  } catch (error) {
    if (!(error instanceof NotStarted)) throw error;
    const { name, message, exitCode } = error;
    run.output.failure({ name, code: "NOT_STARTED", action: "fix-caller", message, exitCode }, message, "");
    run.exitCode = exitCode;
  } finally {
    const found = await taken.release();
    if (found !== undefined) tellLost(found);
  }
}

function parseExitCode(text: string): number {
  const code = /^\d{1,3}$/.test(text) ? Number(text) : NaN;
  if (!(code <= 255)) throw new InvalidArgumentError("Write a number from 0 to 255.");
  return code;
}
