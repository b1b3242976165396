// Removing the directory of a key that has no versions left.
//
// The first slot is removed first, and permanently: its name is random and never reused. From then
// on nothing in the directory counts, so any number of processes may remove the rest, in any order
// and at any time.
import { unlinkIfThere } from "../../durable/publish/directory.ts";
import { retryOutage } from "../../durable/publish/retry-outage.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { KeyEntry } from "../model/entry.ts";
import { findNames, findSlot } from "./entry-file.ts";
import type { KeyStorage } from "./key-storage.ts";
import { compareNames, findIncarnation, isBlockName, isSlotName, type KeyNames } from "./key-names.ts";

/** After this many rounds, the rest is left to the next process that finds the directory. */
const roundsMax = 8;

/** Removes a key whose last entry closes it. */
export async function endKey(storage: KeyStorage, names: KeyNames, incarnation: string): Promise<void> {
  await unlinkIfThere(storage.staging.disk, names.slotPath(incarnation, 1));
  try {
    // Synced before any other slot is removed: if a power cut restored the first slot, a process
    // could win a number that was already used.
    await storage.sync(names.directory);
  } catch (error) {
    if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
  }
  await removeDying(storage.staging.disk, names);
}

/** Removes a directory that has no first slot. Does nothing to a living key. */
export async function removeDying(disk: Disk, { directory }: KeyNames): Promise<void> {
  for (let round = 0; round < roundsMax; round++) {
    try {
      if (disk.volume.kind !== "local") await disk.canOpen(directory);
      const names = await disk.list(directory);
      // The key was created again. A new key's directory arrives with its first slot already in it.
      if (findIncarnation(names) !== undefined) return;
      // The closing entry is removed last. A directory without a first slot and without this entry
      // was therefore not closed.
      for (const name of names.sort(compareNames)) {
        if (isBlockName(name)) await removeBlock(disk, `${directory}/${name}`);
        else await unlinkIfThere(disk, `${directory}/${name}`);
      }
      await retryOutage(disk, parentOf(directory), () => disk.rmdir(directory));
      return;
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return;
      // ENOTEMPTY: a process that slept has linked a file, which does not count, or the key was
      // created again.
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
 * Returns the entries in a directory without a first slot; undefined if the directory has one or is
 * gone. Throws CORRUPT if an entry cannot be read.
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
