// Directories that are missing on the way to a target. No step of a commit makes a directory by its name, because a
// late one would bring back what was removed: the highest one that is missing comes in with all that is in it.
import { syncNames } from "../../durable/publish/directory.ts";
import { makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { Disk, FileStat } from "../../ports/disk.ts";
import type { TreePlace } from "../tree/tree-place.ts";
import type { Granted } from "./tree-work.ts";

export interface TargetLook {
  /** What is there now. */
  readonly found: FileStat | undefined;
  /** The highest directory on the way that is missing; undefined when the directory of the target is there. */
  readonly missing?: string;
  /** `missing` is a file, where a directory would have to be. */
  readonly isInTheWay?: boolean;
}

/** By fresh looks. */
export async function lookAtTarget(place: TreePlace, path: string): Promise<TargetLook> {
  const found = await place.findLook(path);
  if (found !== undefined) return { found };
  let missing: string | undefined;
  for (let at = directoryOf(path); at !== ""; at = directoryOf(at)) {
    const above = await place.findLook(at);
    if (above?.kind === "directory") break;
    missing = at;
    // Refused under the lock on it: a process that died may have removed it already.
    if (above !== undefined) return { found, missing, isInTheWay: true };
  }
  return missing === undefined ? { found } : { found, missing };
}

/** FILE_EXISTS when a file is where a directory would have to be. To be asked under the lock. */
export function mustHaveWay(path: string, { missing = "", isInTheWay = false }: TargetLook): void {
  if (isInTheWay) throw inTheWay(path, missing);
}

/** "" for an entry of the root. */
export function directoryOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

/**
 * Makes, at `staged`, the directories from `highest` down to the one of `target`, and in the last one what `fill`
 * makes. All of it durable.
 */
export async function fillDirectories(
  disk: Disk,
  { highest, target }: { readonly highest: string; readonly target: string },
  staged: string,
  fill: (path: string) => Promise<void>,
): Promise<void> {
  const names = target.slice(highest.length + 1).split("/");
  const made = [staged, ...names.slice(0, -1).map((_, index) => `${staged}/${names.slice(0, index + 1).join("/")}`)];
  for (const directory of made) await makeUniqueDirectory(disk, directory);
  await fill(`${staged}/${names.join("/")}`);
  for (const directory of made.reverse()) await syncNames(disk, directory);
}

/**
 * Brings in the directories down to that of `target`, empty, in a commit of its own: a step cannot rename to a directory
 * that an earlier step of the same commit brings. A process that dies after it leaves empty directories.
 */
export async function bringInDirectories(
  place: TreePlace,
  granted: Granted,
  { highest, target }: { readonly highest: string; readonly target: string },
): Promise<void> {
  const draft = await granted.draft();
  const directory = directoryOf(target);
  const make = (path: string): Promise<void> => makeUniqueDirectory(place.disk, path);
  await draft.in(highest, (staged) =>
    highest === directory ? make(staged) : fillDirectories(place.disk, { highest, target: directory }, staged, make),
  );
  try {
    await draft.commit();
  } catch (error) {
    if (!isHoldfastError(error, "RESOURCE_BUSY")) throw error;
    // The directories will come, and they are not what the caller asked for.
    const message = `${target} was not made: the directories above it cannot be made now. ${error.message}`;
    throw holdfastError(
      "RESOURCE_BUSY",
      message,
      { path: target, blockedBy: error.blockedBy, worthWaiting: true },
      error,
    );
  }
}

function inTheWay(path: string, file: string): Error {
  const message = `${path} cannot be made: ${file} is a file, not a directory.`;
  return holdfastError("FILE_EXISTS", message, { path: file });
}
