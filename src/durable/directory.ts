// Making and removing directories so that a crash or another process in between does no harm.
import { holdfastError } from "../errors.ts";
import { hasErrno } from "../ports/disk-error.ts";
import type { Disk } from "../ports/disk.ts";

export function parentOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf("/"), 1));
}

/**
 * Makes the names in a directory durable. UNSUPPORTED_DISK where the file system has no such thing: then nothing could be acknowledged there in good
 * conscience.
 */
export async function syncNames(disk: Disk, path: string): Promise<void> {
  try {
    await disk.syncDirectory(path);
  } catch (error) {
    if (!hasErrno(error, "EINVAL", "ENOTSUP", "EOPNOTSUPP", "ENOSYS")) throw error;
    const message = `${path}: this file system cannot make the names in a directory durable, so a power cut could take what was acknowledged.`;
    throw holdfastError("UNSUPPORTED_DISK", message, { path, missing: ["directory sync"] }, error);
  }
}

/** Makes `path` and what is missing above it, durable when it resolves. Somebody else making it at the same time is fine. */
export async function ensureDirectory(disk: Disk, path: string): Promise<void> {
  try {
    await disk.mkdir(path);
  } catch (error) {
    // Made by another, whose sync may still be to come: a directory that we build on must be durable by our own hand.
    if (hasErrno(error, "EEXIST")) return await syncNames(disk, parentOf(path));
    if (!hasErrno(error, "ENOENT") || parentOf(path) === path) throw error;
    await ensureDirectory(disk, parentOf(path));
    return await ensureDirectory(disk, path);
  }
  await syncNames(disk, parentOf(path));
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
