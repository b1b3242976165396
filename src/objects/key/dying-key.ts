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
import type { KeyPlace } from "./key-place.ts";
import { findIncarnation, isBlockName, type KeyNames } from "./key-names.ts";

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
      for (const name of names.sort()) {
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
    for (const name of await disk.list(path)) await unlinkIfThere(disk, `${path}/${name}`);
    await disk.rmdir(path);
  } catch (error) {
    if (!hasErrno(error, "ENOENT", "ENOTEMPTY", "EEXIST", "ESTALE")) throw error;
  }
}
