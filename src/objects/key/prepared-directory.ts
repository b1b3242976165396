// Creates the directory of a new key or block so that it appears with its first slot in it, or not
// at all.
import { parentOf } from "../../durable/publish/directory.ts";
import { moveOnce, outcomeUnknown, renameOnce } from "../../durable/publish/publish.ts";
import { assertNotSwept, newTemp } from "../../durable/publish/staging.ts";
import { makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { allEnded } from "../../durable/wait/in-parallel.ts";
import { isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { KeyStorage, StagedEntry } from "./key-storage.ts";

export interface NewDirectory {
  readonly target: string;
  /** Name of the file in the directory. */
  readonly name: string;
  readonly staged: StagedEntry;
}

export interface PlacingSteps {
  /** Runs in parallel with the preparation and completes before the directory moves into place. */
  readonly before?: (() => Promise<void>) | undefined;
  /** Called if the parent directory is missing. Creates it or throws. */
  readonly onMissing?: ((error: unknown) => Promise<void>) | undefined;
}

/**
 * Puts the staged file under `name` into a new directory `target`. Returns false if `target` is
 * taken: a directory that is not empty is never replaced, and the file stays where it was. Throws
 * ENOENT if the parent directory is missing. The caller makes the name of `target` durable.
 *
 * The file is moved, not linked: a first slot must have no second name. As long as a file has any
 * name, a share's client that caches it could link it, so a removed first slot would seem to exist.
 */
export async function moveIntoPlace(
  storage: KeyStorage,
  { target, name, staged: { temp } }: NewDirectory,
  { before, onMissing }: PlacingSteps = {},
): Promise<boolean> {
  const { staging } = storage;
  const { disk } = staging;
  const directory = newTemp(staging, await storage.prepared(temp));
  const first = `${directory}/${name}`;
  await makeUniqueDirectory(disk, directory);
  let isPlaced = false;
  try {
    if (!(await moveOnce(disk, temp, first))) {
      await assertNotSwept(staging, parentOf(temp));
      throw outcomeUnknown(target, undefined);
    }
    // The content must be durable before the name is.
    await allEnded([storage.sync(directory), before?.() ?? Promise.resolve()]);
    try {
      isPlaced = await moveInto(disk, directory, target, name);
    } catch (error) {
      if (onMissing === undefined || !hasErrno(error, "ENOENT")) throw error;
      await onMissing(error);
      isPlaced = await moveInto(disk, directory, target, name);
    }
    return isPlaced;
  } finally {
    if (!isPlaced) await withdraw(disk, directory, first, temp);
  }
}

async function moveInto(disk: Disk, directory: string, target: string, name: string): Promise<boolean> {
  try {
    if (await renameOnce(disk, directory, target)) return true;
  } catch (error) {
    if (isTaken(disk, error)) return false;
    // The reply was "taken", but an earlier reply may have been lost. If the source still exists,
    // no request has moved it.
    const isInDoubt = isHoldfastError(error, "OUTCOME_UNKNOWN") && isTaken(disk, error.cause);
    if (isInDoubt && (await disk.findStat(`${directory}/${name}`)) !== undefined) return false;
    throw error;
  }
  // Either a request whose reply was lost moved the directory, or it was swept. The name of the
  // slot is random, so finding it at the target proves the move.
  if ((await disk.findStat(`${target}/${name}`)) !== undefined) return true;
  throw outcomeUnknown(target, undefined);
}

/** Servers report a target that is not empty by different errors. */
function isTaken({ volume }: Disk, error: unknown): boolean {
  if (hasErrno(error, "ENOTEMPTY", "EEXIST", "ENOTDIR")) return true;
  return volume.kind !== "local" && hasErrno(error, "EACCES", "EPERM", "EBUSY");
}

async function withdraw(disk: Disk, directory: string, first: string, temp: string): Promise<void> {
  try {
    await moveOnce(disk, first, temp);
    await disk.rmdir(directory);
  } catch {
    // An error is ignored: the leftover does no harm and is removed when its holder is swept.
  }
}
