// The command `holdfast locks`: lists who holds what in a store, and breaks locks.
import { resolve } from "node:path";
import type { Command } from "commander";
import {
  findLockRoot,
  findStoreHolder,
  followPath,
  hasStoreLock,
  listPathLocks,
  listSemaphores,
  openPathLocks,
  type HeldLock,
  type SemaphoreHolder,
} from "../../locks/index.ts";
import { exitCodes } from "../exit-codes.ts";
import { formatHeldLocks, formatSemaphore, formatStoreLock, isOfUser } from "../locking/held-locks.ts";
import { endHelp } from "../help.ts";
import { isDatabase } from "./location.ts";
import { resolveBelow } from "../locking/meant-path.ts";
import { asGiven } from "../own-words.ts";
import { reportMissing } from "../part-verb.ts";
import type { Run } from "../run.ts";

const failed = "failed: no permission, disk full";
const wrongUsage = "wrong usage, or PATH cannot be locked";
const missing = "DIR is missing, or nothing was ever locked in it: is the share mounted?";
const verificationFailed = "the lock table is damaged, or its file system cannot be used";

export function registerLocks(locks: Command, run: Run): void {
  locks.description(
    "Lists and breaks the path locks of a store, or of any directory whose paths are locked. Guide: docs/locks.md.",
  );
  endHelp(locks, {
    examples: ["holdfast locks list /mnt/shop", "holdfast locks break /mnt/shop stock/report.csv"],
    exits: { done: "done", failed, wrongUsage, nothingToDo: "break: no process held it", missing, verificationFailed },
  });
  registerList(locks, run);
  registerBreak(locks, run);
}

interface ListFlags {
  readonly all?: boolean;
}

function registerList(locks: Command, run: Run): void {
  const command = locks
    .command("list")
    .summary("list locks and their holders")
    .description("Lists path locks and their waiters, semaphore files, and the holder of the store lock.")
    .argument("<DIR>", "the store, or the directory whose paths are locked")
    .argument("[PATH]", "only locks on this path and below; relative to DIR, or absolute")
    .option("--all", "also list Holdfast's own leases: consumers, indexing, writing")
    .action(async (directory: string, path: string | undefined, { all = false }: ListFlags) => {
      const storeLock = path === undefined ? await findStoreHolder(directory) : undefined;
      const semaphores = await semaphoresOf(directory, path);
      const list = async (root: string): Promise<HeldLock[]> =>
        await listPathLocks(root, { under: path === undefined ? undefined : (await resolveBelow(root, path)).inside });
      const isLockedOtherwise = semaphores.length > 0 || (await hasStoreLock(directory));
      const listed = await inLocksOf(directory, run, list, isLockedOtherwise);
      if (run.exitCode === exitCodes.missing) return;
      const locks = (listed ?? []).filter((lock) => all || isOfUser(lock));
      const found = [
        ...locks.map((lock) => ({ kind: "path", ...lock })),
        ...semaphores.map((each) => ({ kind: "semaphore", ...each })),
        ...(storeLock === undefined ? [] : [{ kind: "store", ...storeLock, path: run.output.spell(storeLock.path) }]),
      ];
      run.output.list(found, (page) => {
        const parts = locks.length > 0 ? [formatHeldLocks(locks, page)] : [];
        parts.push(...semaphores.map(formatSemaphore));
        if (storeLock !== undefined) parts.push(formatStoreLock(storeLock));
        return parts.length === 0 ? "Nothing is locked." : parts.join("\n");
      });
    });
  endHelp(command, {
    examples: ["holdfast locks list /mnt/shop", "holdfast locks list /mnt/shop stock --json | jq .holder.pid"],
    exits: {
      done: "listed, also when nothing is locked",
      failed,
      wrongUsage,
      missing,
      verificationFailed,
    },
  });
}

/**
 * Returns the holders of semaphore files in `directory` and, if that is a store, in its tree; with
 * `path`, only of the semaphore file of that path.
 */
async function semaphoresOf(directory: string, path: string | undefined): Promise<SemaphoreHolder[]> {
  if (isDatabase(directory)) return [];
  const root = await findLockRoot(directory);
  const isStore = root?.path === "" && root.root !== (await followPath(directory)).path;
  const places = [directory, ...(isStore ? [`${directory.replace(/\/+$/, "")}/files`] : [])];
  const found: SemaphoreHolder[] = [];
  for (const place of places)
    for (const semaphore of await listSemaphores(place))
      found.push({ ...semaphore, path: asGiven(place, semaphore.path) });
  if (path === undefined) return found;
  const wanted = new Set(places.map((place) => resolve(place, `${path}.lock`)));
  return found.filter((semaphore) => wanted.has(resolve(semaphore.path)));
}

function registerBreak(locks: Command, run: Run): void {
  const command = locks
    .command("break")
    .summary("evict the holders of a path")
    .description(
      "Evicts every process that holds PATH or a tree around it; its later commits through Holdfast are refused.",
    )
    .argument("<DIR>", "the store, or the directory whose paths are locked")
    .argument("<PATH>", "relative to DIR, or absolute and below it")
    .action(async (directory: string, path: string) => {
      const evicted =
        (await inLocksOf(directory, run, async (root) => {
          await using locks = await openPathLocks(root);
          return await locks.break((await resolveBelow(locks.root, path)).inside);
        })) ?? [];
      if (run.exitCode === exitCodes.missing) return;
      if (evicted.length === 0) run.exitCode = exitCodes.nothingToDo;
      run.output.list(evicted, (page) =>
        evicted.length === 0 ? "Nothing holds it." : `Evicted:\n${formatHeldLocks(evicted, page)}`,
      );
    });
  endHelp(command, {
    examples: ["holdfast locks break /mnt/shop stock/report.csv"],
    exits: {
      done: "a holder was evicted",
      failed,
      wrongUsage,
      nothingToDo: "no process held it",
      missing,
      verificationFailed,
    },
  });
}

/**
 * Opens the locks. Returns undefined if there are none, because opening them would create a table.
 * Sets the exit code if DIR is neither a store nor a directory with path locks.
 */
async function inLocksOf(
  directory: string,
  run: Run,
  action: (root: string) => Promise<HeldLock[]>,
  isLockedOtherwise = false,
): Promise<HeldLock[] | undefined> {
  const found = await findLockRoot(directory);
  if (found?.path === "" && found.hasLocks) return await action(found.root);
  if (isLockedOtherwise || found?.path === "") return undefined;
  const nearest = found?.hasLocks ? `; above it, ${found.root} has locks` : "";
  const message = `nothing was ever locked in ${directory}${nearest}: is it the right directory, and is the share mounted?`;
  return reportMissing(run, "NO_LOCKS", message, directory);
}
