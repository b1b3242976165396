// The command `holdfast run`: what flock(1) is used for. A command under a lock, and its exit code.
import { InvalidArgumentError, Option, type Command } from "commander";
import { isHoldfastError } from "../../index.ts";
import { findLockRoot } from "../../locks/index.ts";
import { findPathLock, semaphoreLock, storelessLock, type ChosenLock, type LockWish } from "../locking/chosen-lock.ts";
import { parseDuration } from "../duration.ts";
import { exitCodes } from "../exit-codes.ts";
import { explain } from "../locking/explained-wait.ts";
import { reportFailure } from "../failure.ts";
import { NotStarted, runGuarded } from "../locking/guarded-command.ts";
import { endHelp } from "../help.ts";
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
}

export function registerRun(command: Command, run: Run): void {
  command
    .description(
      [
        "Takes a lock, runs CMD, and releases the lock when CMD has ended. Ends with the exit code of CMD (128 + n when signal n has ended it), or with one of those below. Waits for the lock as long as it takes, unless --timeout or -n says otherwise.",
        "",
        "Which lock: that of PATH in the store of --store, else of $HOLDFAST_STORE, else of the nearest store above PATH; where there is none, the semaphore file PATH.lock. In a named store, PATH is relative to its tree of files, or absolute and below that. Symbolic links are followed first, so PATH.lock lies beside what PATH leads to. A semaphore file PATH.lock that somebody took before there was a store is waited for, so that a store may be made at any time; not so one below PATH (--tree), nor by programs that lock paths by themselves. Where one store lies inside another, name it: a nearer one that is made later is found instead.",
        "",
        "CMD gets the signals that this command gets, except, where this command has a terminal, SIGINT and SIGQUIT: a terminal sends those to both. To outlive a hang-up, use setsid; nohup does nothing here, because Node no longer ignores what it was started to ignore. In a store it finds the fence of the lock in $HOLDFAST_FENCE, to be passed on to whatever it writes to. When the lock is lost while CMD runs (broken, or this machine slept for too long), CMD gets SIGTERM. The lock ends with this process: when it is killed by SIGKILL, CMD may still run while the next one has the lock.",
      ].join("\n"),
    )
    .argument("<CMD...>", "the command and its arguments; options behind it are its own")
    .passThroughOptions()
    .option("--lock <PATH>", "what to lock; nothing needs to be there")
    .option(
      "--store <DIR>",
      "the store, made if it is not there, in a directory that is (default: $HOLDFAST_STORE, or the nearest above PATH)",
    )
    .addOption(
      new Option(
        "--semaphore <FILE>",
        "lock this semaphore file in the place of PATH, which may be left out, whatever store is near",
      ).conflicts("store"),
    )
    .option("--tree", "lock PATH and everything below it")
    .option("--shared", "lock it for reading: others may lock it so at the same time")
    .option("--timeout <duration>", "how long to wait: 30s, 500ms, 2m (default: for ever)", parseDuration)
    .addOption(new Option("-n, --nonblock", "do not wait at all").conflicts("timeout"))
    .addOption(
      new Option("--busy-exit <N>", "what to end with when the lock is not to be had")
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
      done: "CMD ended with 0",
      failed: "the lock could not be taken or released: no permission, disk full",
      wrongUsage: "wrong usage, or PATH cannot be locked",
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
  const wish: LockWish = { path, store: flags.store ?? (process.env["HOLDFAST_STORE"] || undefined), tree, shared };
  if (wish.store !== undefined && (await findLockRoot(wish.store))?.path !== "")
    run.output.note(`holdfast: nothing was ever locked in ${wish.store}: making a new lock table there`);
  const chosen = await findPathLock(wish);
  if (chosen !== undefined) return chosen;
  // Not silently weaker than what was asked for.
  if (tree || shared) command.error(`error: --tree and --shared need a store, and there is none above ${path}: name it with --store`); // prettier-ignore
  const storeless = await storelessLock(wish, warn);
  run.output.note(`holdfast: no store above ${path}: locking the semaphore file ${storeless.file}`);
  return storeless;
}

async function runUnder(lock: ChosenLock, words: readonly string[], flags: RunFlags, run: Run): Promise<void> {
  const timeoutMs = flags.nonblock ? 0 : (flags.timeout ?? Infinity);
  // Not the arguments: others can read the tag, and arguments may be secrets.
  const waiting = { timeoutMs, signal: run.signal, tag: words[0] ?? "" };
  const { name: what } = lock;
  const wait = { what, findHolder: () => lock.findHolder(), wait: () => lock.acquire(waiting) };
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
