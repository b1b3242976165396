// Making and removing directories so that a crash or another process in between does no harm.
import { hasErrno } from "../ports/disk-error.ts";
import type { Disk } from "../ports/disk.ts";
import { parentOf } from "./publish.ts";

/** Makes `path` and what is missing above it, durable when it resolves. Somebody else making it at the same time is fine. */
export async function ensureDirectory(disk: Disk, path: string): Promise<void> {
  try {
    await disk.mkdir(path);
  } catch (error) {
    // Made by another, whose sync may still be to come: a directory that we build on must be durable by our own hand.
    if (hasErrno(error, "EEXIST")) return await disk.syncDirectory(parentOf(path));
    if (!hasErrno(error, "ENOENT") || parentOf(path) === path) throw error;
    await ensureDirectory(disk, parentOf(path));
    return await ensureDirectory(disk, path);
  }
  await disk.syncDirectory(parentOf(path));
}

const roundsMax = 3;

/**
 * Removes a directory of files that is nobody's any more. True when it is gone; false when somebody keeps adding to it, or a file in it cannot be
 * removed now: the next sweep will find it again.
 */
export async function removeDirectory(disk: Disk, path: string): Promise<boolean> {
  for (let round = 0; round < roundsMax; round++) {
    try {
      for (const name of await disk.list(path)) await unlinkIfThere(disk, `${path}/${name}`);
      await disk.rmdir(path);
      return true;
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ESTALE")) return true;
      if (!hasErrno(error, "ENOTEMPTY", "EEXIST", "EBUSY", "EPERM", "EACCES")) throw error;
    }
  }
  return false;
}

export async function unlinkIfThere(disk: Disk, path: string): Promise<void> {
  try {
    await disk.unlink(path);
  } catch (error) {
    if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
  }
}
