// A directory that appears with its first slot in it, or not at all: of a new key, or of a new
// block.
import { parentOf } from "../../durable/publish/directory.ts";
import { moveOnce, outcomeUnknown, renameOnce } from "../../durable/publish/publish.ts";
import { assertNotSwept, newTemp } from "../../durable/publish/staging.ts";
import { makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { allEnded } from "../../durable/wait/in-parallel.ts";
import { isHoldfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { KeyPlace, StagedEntry } from "./key-place.ts";

export interface NewDirectory {
  readonly target: string;
  /** Of the file in it. */
  readonly name: string;
  readonly staged: StagedEntry;
}

export interface PlaceSteps {
  /** Done before the directory gets its place, beside the preparation. */
  readonly before?: (() => Promise<void>) | undefined;
  /** Called when the directory above is missing: makes it, or throws. */
  readonly onMissing?: ((error: unknown) => Promise<void>) | undefined;
}

/**
 * Puts the staged file under `name` into a new directory `target`. False when another one has that
 * name: a directory with something in it is never replaced. Then the file is where it was. ENOENT
 * when the directory above is missing. The caller makes the name of `target` durable.
 *
 * The file is moved, not linked: a first slot must have no second name. On a share a client that
 * remembers a file may link from it for as long as it has any name, and so "the first slot is still
 * there" would be said of one that was removed.
 */
export async function placeDirectory(
  place: KeyPlace,
  { target, name, staged: { temp } }: NewDirectory,
  { before, onMissing }: PlaceSteps = {},
): Promise<boolean> {
  const { staging } = place;
  const { disk } = staging;
  const directory = newTemp(staging, await place.prepared(temp));
  const first = `${directory}/${name}`;
  await makeUniqueDirectory(disk, directory);
  let isPlaced = false;
  try {
    if (!(await moveOnce(disk, temp, first))) {
      await assertNotSwept(staging, parentOf(temp));
      throw outcomeUnknown(target, undefined);
    }
    // Before it gets its place: what is in it must be durable when its name is.
    await allEnded([place.sync(directory), before?.() ?? Promise.resolve()]);
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
    // The last answer was "taken", and an earlier one was lost: as long as the source is there, no
    // request has moved it.
    const isInDoubt = isHoldfastError(error, "OUTCOME_UNKNOWN") && isTaken(disk, error.cause);
    if (isInDoubt && (await disk.findStat(`${directory}/${name}`)) !== undefined) return false;
    throw error;
  }
  // It has moved, by a request whose answer was lost, or it was swept. The name of the slot is
  // random, so it tells.
  if ((await disk.findStat(`${target}/${name}`)) !== undefined) return true;
  throw outcomeUnknown(target, undefined);
}

/** What a share answers for a directory that is not empty differs by server. */
function isTaken({ volume }: Disk, error: unknown): boolean {
  if (hasErrno(error, "ENOTEMPTY", "EEXIST", "ENOTDIR")) return true;
  return volume.kind !== "local" && hasErrno(error, "EACCES", "EPERM", "EBUSY");
}

async function withdraw(disk: Disk, directory: string, first: string, temp: string): Promise<void> {
  try {
    await moveOnce(disk, first, temp);
    await disk.rmdir(directory);
  } catch {
    // It is in the way of nothing, and goes when its holder is swept.
  }
}
