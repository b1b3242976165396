// Removing the directory of a key that has no version any more.
//
// The first slot goes first, and for good: its name is random and never made again. From then on
// nothing in the directory counts, so any number of processes may remove the rest, in any order and
// at any time.
import { unlinkIfThere } from "../../durable/publish/directory.ts";
import { retryOutage } from "../../durable/publish/retry-outage.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { KeyEntry } from "../model/entry.ts";
import { findSlot } from "./entry-file.ts";
import type { KeyPlace } from "./key-place.ts";
import { compareNames, findIncarnation, isBlockName, isSlotName, type KeyNames } from "./key-names.ts";

/** What cannot be removed in so many rounds is left to the next process that meets it. */
const roundsMax = 8;

/** Ends the key whose last entry says that it is closed. */
export async function endKey(place: KeyPlace, names: KeyNames, incarnation: string): Promise<void> {
  await unlinkIfThere(place.staging.disk, names.slotPath(incarnation, 1));
  try {
    // Before any other slot goes: a first slot that came back after a power cut would let a process
    // win numbers that were vacated.
    await place.sync(names.directory);
  } catch (error) {
    if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
  }
  await removeDying(place.staging.disk, names);
}

/** Removes a directory without a first slot. Does nothing to a key that lives. */
export async function removeDying(disk: Disk, { directory }: KeyNames): Promise<void> {
  for (let round = 0; round < roundsMax; round++) {
    try {
      if (disk.volume.kind !== "local") await disk.canOpen(directory);
      const names = await disk.list(directory);
      // Born anew: every name that a key lives by was in the directory before it came here.
      if (findIncarnation(names) !== undefined) return;
      // The last entry, which says that the key was closed, goes last: what lacks it was not closed.
      for (const name of names.sort(compareNames)) {
        if (isBlockName(name)) await removeBlock(disk, `${directory}/${name}`);
        else await unlinkIfThere(disk, `${directory}/${name}`);
      }
      await retryOutage(disk, parentOf(directory), () => disk.rmdir(directory));
      return;
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return;
      // ENOTEMPTY: a process that slept has linked something, which does not count, or the key was
      // born anew.
      if (!hasErrno(error, "ENOTEMPTY", "EEXIST", "EBUSY", "EACCES", "EPERM", "ESTALE")) throw error;
    }
  }
}

async function removeBlock(disk: Disk, path: string): Promise<void> {
  try {
    for (const name of (await disk.list(path)).sort()) await unlinkIfThere(disk, `${path}/${name}`);
    await disk.rmdir(path);
  } catch (error) {
    if (!hasErrno(error, "ENOENT", "ENOTEMPTY", "EEXIST", "ESTALE")) throw error;
  }
}

/**
 * The entries that lie in a directory without a first slot; undefined when it has one, or is gone.
 * CORRUPT when one cannot be read.
 */
export async function findDyingEntries(disk: Disk, { directory }: KeyNames): Promise<KeyEntry[] | undefined> {
  if (disk.volume.kind !== "local") await disk.canOpen(directory);
  const names = await findNames(disk, directory);
  if (names === undefined || findIncarnation(names) !== undefined) return undefined;
  const paths = names.filter(isSlotName).map((name) => `${directory}/${name}`);
  for (const block of names.filter(isBlockName)) {
    const slots = ((await findNames(disk, `${directory}/${block}`)) ?? []).filter(isSlotName);
    paths.push(...slots.map((name) => `${directory}/${block}/${name}`));
  }
  const entries: KeyEntry[] = [];
  for (const path of paths) {
    const slot = await findSlot(disk, path);
    if (slot !== undefined) entries.push(slot.entry);
  }
  return entries;
}

async function findNames(disk: Disk, directory: string): Promise<string[] | undefined> {
  try {
    return await disk.list(directory);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESTALE", "ENOTDIR")) return undefined;
    throw error;
  }
}
