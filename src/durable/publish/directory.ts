// Making and removing directories so that a crash or another process in between does no harm.
import { holdfastError } from "../../errors.ts";
import { diskError, hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { retryOutage } from "./retry-outage.ts";

export function parentOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf("/"), 1));
}

/**
 * Makes the names in a directory durable. UNSUPPORTED_DISK where the file system has no such thing:
 * then nothing could be acknowledged there in good conscience.
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

/**
 * Makes `path` and what is missing above it, durable when it resolves. Somebody else making it at
 * the same time is fine.
 */
export async function ensureDirectory(disk: Disk, path: string): Promise<void> {
  try {
    await makeDirectory(disk, path);
  } catch (error) {
    if (!hasErrno(error, "ENOENT") || parentOf(path) === path) throw error;
    await ensureDirectory(disk, parentOf(path));
    // Once more, and not until it works: a symbolic link that leads nowhere is there and is not
    // there, however often it is asked.
    await makeDirectory(disk, path);
  }
  // Also when another has made it, whose sync may still be to come: a directory that we build on
  // must be durable by our own hand.
  await syncNames(disk, parentOf(path));
}

/** ENOTDIR when the name is taken by something else. */
async function makeDirectory(disk: Disk, path: string): Promise<void> {
  try {
    await retryOutage(disk, parentOf(path), () => disk.mkdir(path));
  } catch (error) {
    if (!hasErrno(error, "EEXIST")) throw error;
    if ((await disk.stat(path)).kind !== "directory") throw diskError("ENOTDIR", "mkdir", path, error);
  }
}

/** Whether `path` itself is a symbolic link, wherever it leads. */
export async function isLink(disk: Disk, path: string): Promise<boolean> {
  const slash = path.lastIndexOf("/");
  return await disk.hasLink(path.slice(0, slash), path.slice(slash + 1));
}

/**
 * The names in a directory that is about to be emptied; ENOTDIR for a symbolic link, behind which
 * everything is somebody else's. What remains: whoever may write to the directory above can put a
 * link in the place of the directory between this look and the listing, or between the listing and
 * an unlink. Node has no calls that go by an open directory.
 */
async function listToRemove(disk: Disk, path: string): Promise<string[]> {
  if (await isLink(disk, path)) throw diskError("ENOTDIR", "list", path);
  return await disk.list(path);
}

const roundsMax = 3;

/**
 * Removes a directory of files that is nobody's any more. True when it is gone; false when somebody
 * keeps adding to it, or a file in it cannot be removed now: the next sweep will find it again.
 * False also for a symbolic link, which is left as it is.
 */
export async function removeDirectory(disk: Disk, path: string): Promise<boolean> {
  for (let round = 0; round < roundsMax; round++) {
    try {
      for (const name of await listToRemove(disk, path)) await unlinkIfThere(disk, `${path}/${name}`);
      await retryOutage(disk, parentOf(path), () => disk.rmdir(path));
      return true;
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return true;
      // EISDIR, ENOTDIR: something that we did not make. It is none of our business, and must not
      // keep a sweep from going on. ESTALE does not say that it is gone.
      if (!hasErrno(error, "ENOTEMPTY", "EEXIST", "EBUSY", "EPERM", "EACCES", "EISDIR", "ENOTDIR", "ESTALE"))
        throw error;
    }
  }
  return false;
}

/**
 * A name that is used once: to ask again cannot hit anything of another process. When it resolves,
 * the name is gone.
 */
export async function unlinkIfThere(disk: Disk, path: string): Promise<void> {
  try {
    await retryOutage(disk, parentOf(path), () => disk.unlink(path));
  } catch (error) {
    if (!hasErrno(error, "ENOENT")) throw error;
  }
}

/**
 * Removes a directory and all that is in it, or a file, or a symbolic link, and never what a link
 * leads to. What cannot be removed now stays; so does what somebody keeps adding to.
 */
export async function removeTree(disk: Disk, path: string): Promise<void> {
  try {
    await retryOutage(disk, parentOf(path), () => disk.unlink(path));
    return;
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESTALE")) return;
    // What a directory answers to unlink: EISDIR on Linux, EPERM elsewhere. The others also come
    // from a directory that nothing may be removed from.
    if (!hasErrno(error, "EISDIR", "EPERM", "EACCES", "EBUSY")) throw error;
  }
  try {
    for (const name of await listToRemove(disk, path)) await removeTree(disk, `${path}/${name}`);
    await retryOutage(disk, parentOf(path), () => disk.rmdir(path));
  } catch (error) {
    if (!hasErrno(error, "ENOENT", "ESTALE", "ENOTDIR", "ENOTEMPTY", "EEXIST", "EBUSY", "EPERM", "EACCES")) throw error;
  }
}
