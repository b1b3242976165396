// Making a name with random bits in it, which no other process can have made. If it is there
// already, the answer to an earlier request was lost.
import { hasErrno } from "../../ports/disk-error.ts";
import type { CreateFileOptions, Disk, DiskFile } from "../../ports/disk.ts";
import { retryOutage, isUnanswered } from "./retry-outage.ts";
import { parentOf } from "./directory.ts";

/** Two tries per outage: the first may have created the file before the reply was lost. */
const triesMax = 4;

export async function makeUniqueDirectory(disk: Disk, path: string): Promise<void> {
  try {
    await retryOutage(disk, parentOf(path), () => disk.mkdir(path));
  } catch (error) {
    if (!hasErrno(error, "EEXIST")) throw error;
  }
}

/**
 * Opened empty, for reading and writing. EEXIST on a local disk, where no answer is lost: then the
 * name was not unique.
 */
export async function openUniqueFile(disk: Disk, path: string): Promise<DiskFile> {
  for (let tries = 1; ; tries++) {
    try {
      return await disk.open(path, "create");
    } catch (error) {
      const mayBeOurs = isUnanswered(error) || hasErrno(error, "EEXIST");
      if (tries >= triesMax || disk.volume.kind === "local" || !mayBeOurs) throw error;
      // An earlier request of this call made it, and its answer was lost: it is made anew.
      await disk.unlink(path).catch(() => undefined);
      if (isUnanswered(error)) await disk.canOpen(parentOf(path));
    }
  }
}

/**
 * A failure leaves nothing behind where it can be removed; otherwise only a sweep ever meets it.
 */
export async function createUniqueFile(
  disk: Disk,
  path: string,
  bytes: Uint8Array,
  options: CreateFileOptions,
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await disk.createFile(path, bytes, options);
    } catch (error) {
      // Whole or not, it is made anew: no other process knows of it.
      await disk.unlink(path).catch(() => undefined);
      if (tries >= triesMax || !(isUnanswered(error) || hasErrno(error, "EEXIST"))) throw error;
      // Waits for a server that is away.
      if (isUnanswered(error)) await disk.canOpen(parentOf(path));
    }
  }
}
