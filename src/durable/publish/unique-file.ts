// Creates names with random bits, which no other process can have made. If such a name exists
// already, the reply to an earlier request was lost.
import { hasErrno } from "../../ports/disk-error.ts";
import type { CreateFileOptions, Disk, DiskFile } from "../../ports/disk.ts";
import { retryOutage, isUnanswered } from "./retry-outage.ts";
import { parentOf } from "./directory.ts";

/** Two tries per outage: the first may have created the file before its reply was lost. */
const triesMax = 4;

export async function makeUniqueDirectory(disk: Disk, path: string): Promise<void> {
  try {
    await retryOutage(disk, parentOf(path), () => disk.mkdir(path));
  } catch (error) {
    if (!hasErrno(error, "EEXIST")) throw error;
  }
}

/**
 * Creates an empty file for reading and writing. Throws EEXIST on a local disk, where no reply is
 * lost: then the name was not unique.
 */
export async function openUniqueFile(disk: Disk, path: string): Promise<DiskFile> {
  for (let tries = 1; ; tries++) {
    try {
      return await disk.open(path, "create");
    } catch (error) {
      const mayBeOurs = isUnanswered(error) || hasErrno(error, "EEXIST");
      if (tries >= triesMax || disk.volume.kind === "local" || !mayBeOurs) throw error;
      // An earlier request of this call made the file, and its reply was lost: create it again.
      await disk.unlink(path).catch(() => undefined);
      if (isUnanswered(error)) await disk.canOpen(parentOf(path));
    }
  }
}

/** Creates the file. After a failure it removes the file if possible; otherwise a sweep does. */
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
      // Complete or not, the file is created again: no other process knows it.
      await disk.unlink(path).catch(() => undefined);
      if (tries >= triesMax || !(isUnanswered(error) || hasErrno(error, "EEXIST"))) throw error;
      // The open waits for an unreachable server.
      if (isUnanswered(error)) await disk.canOpen(parentOf(path));
    }
  }
}
