// The target of a write, a move or an add, with the missing directories above it. No commit creates
// a directory by its own name, because a late step would restore one that was removed since.
// Instead, the highest missing directory is moved in together with its content.
import { syncNames } from "../../durable/publish/directory.ts";
import { makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { Located } from "../../locks/naming/lock-key.ts";
import type { RedoDraft } from "../../locks/redo/draft.ts";
import type { Disk, FileStat } from "../../ports/disk.ts";
import type { Tree } from "../tree/tree.ts";
import type { BeginSteps } from "./commit.ts";

export interface FoundTarget {
  /** The entry that exists there now. */
  readonly found: FileStat | undefined;
  /** The highest missing directory on the way; undefined if the directory of the target exists. */
  readonly missing?: string;
  /** True if `missing` is a file, where a directory would have to be. */
  readonly isBlocked?: boolean;
}

/** Makes a new file or directory at the path that it gets; durable when it resolves. */
export type CreateEntry = (path: string) => Promise<void>;

/** Stats the target and the directories above it, bypassing caches. */
export async function findTarget(tree: Tree, path: string): Promise<FoundTarget> {
  const found = await tree.findLook(path);
  if (found !== undefined) return { found };
  let missing: string | undefined;
  for (let at = directoryOf(path); at !== ""; at = directoryOf(at)) {
    const above = await tree.findLook(at);
    if (above?.kind === "directory") break;
    missing = at;
    // Refused later, under the lock on it: a dead process may have committed its removal.
    if (above !== undefined) return { found, missing, isBlocked: true };
  }
  return missing === undefined ? { found } : { found, missing };
}

/** Returns the path to lock: the highest missing directory, or the target itself. */
export function lockedFor(tree: Tree, target: Located, { missing }: FoundTarget): Located {
  return missing === undefined ? target : { path: missing, key: tree.keyOf(missing) };
}

/** Call it under the lock. Throws FILE_EXISTS if a file is where a directory would have to be. */
export function mustBeReachable(path: string, { missing = "", isBlocked = false }: FoundTarget): void {
  if (!isBlocked) return;
  const message = `${path} cannot be made: ${missing} is a file, not a directory.`;
  throw holdfastError("FILE_EXISTS", message, { path: missing });
}

/**
 * Stages the result of `fill` as `target`, with the missing directories. Returns the stat of the
 * new entry.
 */
export async function bringIn(
  tree: Tree,
  steps: RedoDraft,
  { target, missing }: FoundTarget & { readonly target: string },
  fill: CreateEntry,
): Promise<FileStat> {
  if (missing === undefined) return await steps.in({ path: target, key: tree.keyOf(target) }, fill);
  return await steps.in({ path: missing, key: tree.keyOf(missing) }, (staged) =>
    fillDirectories(tree.disk, { highest: missing, target }, staged, fill),
  );
}

/**
 * Creates the empty directories down to that of `target`, in a separate commit: a step cannot
 * rename into a directory that an earlier step of the same commit brings. If the process dies after
 * that commit, empty directories remain.
 */
export async function bringInDirectories(
  tree: Tree,
  begin: BeginSteps,
  { highest, target }: { readonly highest: string; readonly target: string },
): Promise<void> {
  const steps = await begin();
  const directory = directoryOf(target);
  const missing = highest === directory ? {} : { missing: highest };
  await bringIn(tree, steps, { found: undefined, target: directory, ...missing }, (path) =>
    makeUniqueDirectory(tree.disk, path),
  );
  try {
    await steps.commit();
  } catch (error) {
    if (!isHoldfastError(error, "RESOURCE_BUSY")) throw error;
    // The directories are committed, but the caller asked for more.
    const message = `${target} was not made: the directories above it cannot be made now. ${error.message}`;
    const facts = { path: target, blockedBy: error.blockedBy, worthWaiting: true };
    throw holdfastError("RESOURCE_BUSY", message, facts, error);
  }
}

/**
 * Makes the directories from `highest` down to that of `target` at `staged`, and `target` in the
 * last one. All are durable.
 */
async function fillDirectories(
  disk: Disk,
  { highest, target }: { readonly highest: string; readonly target: string },
  staged: string,
  fill: CreateEntry,
): Promise<void> {
  const names = target.slice(highest.length + 1).split("/");
  const made = [staged, ...names.slice(0, -1).map((_, index) => `${staged}/${names.slice(0, index + 1).join("/")}`)];
  for (const directory of made) await makeUniqueDirectory(disk, directory);
  await fill(`${staged}/${names.join("/")}`);
  for (const directory of made.reverse()) await syncNames(disk, directory);
}

/** Returns the parent directory; "" for an entry of the root. */
function directoryOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}
