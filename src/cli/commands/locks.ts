// The command `holdfast locks`: who holds what in a store, and a way to take it from them.
import type { Command } from "commander";
import { findLockRoot, findStoreHolder, listPathLocks, openPathLocks, type HeldLock } from "../../locks/index.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatHeldLocks, formatStoreLock } from "../locking/held-locks.ts";
import { endHelp } from "../help.ts";
import { meantBelow } from "../locking/meant-path.ts";
import type { Run } from "../run.ts";

const failed = "failed: no permission, disk full";
const wrongUsage = "wrong usage, or PATH cannot be locked";
const verificationFailed = "the lock table is damaged, or its file system cannot be used";

export function registerLocks(locks: Command, run: Run): void {
  locks.description("Shows and breaks the path locks of a store, or of any directory in which paths were locked.");
  endHelp(locks, {
    examples: ["holdfast locks list /mnt/shop", "holdfast locks break /mnt/shop stock/report.csv"],
    exits: { done: "done", failed, wrongUsage, nothingToDo: "nothing to do", verificationFailed },
  });
  registerList(locks, run);
  registerBreak(locks, run);
}

function registerList(locks: Command, run: Run): void {
  const command = locks
    .command("list")
    .summary("who holds what")
    .description(
      "Lists the path locks that are held in DIR, and who waits for them; and who has the store lock of DIR. With PATH, only path locks on it and below it. Makes nothing where there are no locks, and works also where nothing can be written.",
    )
    .argument("<DIR>", "the store, or the directory whose paths are locked")
    .argument("[PATH]", "relative to DIR, or absolute and below it")
    .action(async (directory: string, path: string | undefined) => {
      const storeLock = path === undefined ? await findStoreHolder(directory) : undefined;
      const list = async (root: string): Promise<HeldLock[]> =>
        await listPathLocks(root, { under: path === undefined ? undefined : (await meantBelow(root, path)).inside });
      const locks = (await inLocksOf(directory, run, list, storeLock !== undefined)) ?? [];
      const found = { directory, locks, ...(storeLock === undefined ? {} : { storeLock }) };
      run.output.result(found, (page) => {
        const parts = locks.length > 0 ? [formatHeldLocks(locks, page)] : [];
        if (storeLock !== undefined) parts.push(formatStoreLock(storeLock));
        return parts.length === 0 ? "Nothing is locked." : parts.join("\n");
      });
    });
  endHelp(command, {
    examples: ["holdfast locks list /mnt/shop", "holdfast locks list /mnt/shop stock --json"],
    exits: {
      done: "listed, also when nothing is locked",
      failed,
      wrongUsage,
      nothingToDo: "nothing was ever locked in DIR: is it the right one?",
      verificationFailed,
    },
  });
}

function registerBreak(locks: Command, run: Run): void {
  const command = locks
    .command("break")
    .summary("evict the holders of a path")
    .description(
      "Takes PATH from every process that holds it, also by a lock on a tree that it is in, and tells which they were. What they commit through Holdfast from then on is refused; what they write by themselves is not, so end them first if you can.",
    )
    .argument("<DIR>", "the store, or the directory whose paths are locked")
    .argument("<PATH>", "relative to DIR, or absolute and below it")
    .action(async (directory: string, path: string) => {
      const evicted =
        (await inLocksOf(directory, run, async (root) => {
          await using locks = await openPathLocks(root);
          return await locks.break((await meantBelow(locks.root, path)).inside);
        })) ?? [];
      if (evicted.length === 0) run.exitCode = exitCodes.nothingToDo;
      run.output.result({ directory, path, evicted }, (page) =>
        evicted.length === 0 ? "Nothing holds it." : `Evicted:\n${formatHeldLocks(evicted, page)}`,
      );
    });
  endHelp(command, {
    examples: ["holdfast locks break /mnt/shop stock/report.csv"],
    exits: {
      done: "a holder was evicted",
      failed,
      wrongUsage,
      nothingToDo: "nothing held it",
      verificationFailed,
    },
  });
}

/**
 * Undefined, with the exit code for it, where nothing was ever locked: to open the locks would make
 * a table there.
 */
async function inLocksOf(
  directory: string,
  run: Run,
  action: (root: string) => Promise<HeldLock[]>,
  isLockedOtherwise = false,
): Promise<HeldLock[] | undefined> {
  const found = await findLockRoot(directory);
  if (found?.path === "" && found.hasLocks) return await action(found.root);
  if (isLockedOtherwise) return undefined;
  run.exitCode = exitCodes.nothingToDo;
  const nearest = found?.hasLocks ? `; above it, ${found.root} has locks` : "";
  run.output.note(`holdfast: nothing was ever locked in ${directory}${nearest}`);
  return undefined;
}
