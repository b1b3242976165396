// Making and removing directories so that a crash or another process in between does no harm.
import { holdfastError } from "../../errors.ts";
import { diskError, hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { retryOutage } from "./retry-outage.ts";

export function parentOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf("/"), 1));
}

/**
 * Makes the names in a directory durable. UNSUPPORTED_DISK where the file system cannot: nothing
 * could be acknowledged there.
 */
export async function syncNames(disk: Disk, path: string): Promise<void> {
  try {
    await disk.syncDirectory(path);
  } catch (error) {
    if (!hasErrno(error, "EINVAL", "ENOTSUP", "EOPNOTSUPP", "ENOSYS")) throw error;
    const message = `${path}: this file system cannot make the names in a directory durable, so a power cut could take what was acknowledged. Use another file system.`;
    throw holdfastError("UNSUPPORTED_DISK", message, { path, missing: ["directory sync"] }, error);
  }
}

/**
 * Makes `path` and what is missing above it; durable when it resolves. Another process may make it
 * at the same time. `sync` makes the names in a directory durable: callers of one process may share
 * it.
 */
export async function ensureDirectory(
  disk: Disk,
  path: string,
  sync: (directory: string) => Promise<void> = (directory) => syncNames(disk, directory),
): Promise<void> {
  try {
    await makeDirectory(disk, path);
  } catch (error) {
    if (!hasErrno(error, "ENOENT") || parentOf(path) === path) throw error;
    await ensureDirectory(disk, parentOf(path), sync);
    // Once more, and not until it works: a symbolic link that leads nowhere exists for mkdir and is
    // missing for all else.
    await makeDirectory(disk, path);
  }
  // Also when another process has made it: its sync may still be to come, and what is built on a
  // directory must not be durable before it is.
  await sync(parentOf(path));
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
 * The names in a directory that is about to be emptied; ENOTDIR for a symbolic link, because
 * nothing behind it belongs to this directory. One gap remains: a process that may write to the
 * directory above can put a link in the place of the directory between this look and the listing,
 * or between the listing and an unlink. Node has no calls that go by an open directory.
 */
async function listToRemove(disk: Disk, path: string): Promise<string[]> {
  if (await isLink(disk, path)) throw diskError("ENOTDIR", "list", path);
  return await disk.list(path);
}

const roundsMax = 3;

/**
 * Removes a directory of files whose holder is gone. True when the directory is gone; false when
 * another process keeps adding to it, or when a file in it cannot be removed now: the next sweep
 * finds it again. False also for a symbolic link, which is left as it is.
 */
export async function removeDirectory(disk: Disk, path: string): Promise<boolean> {
  for (let round = 0; round < roundsMax; round++) {
    try {
      for (const name of await listToRemove(disk, path)) await unlinkIfThere(disk, `${path}/${name}`);
      await retryOutage(disk, parentOf(path), () => disk.rmdir(path));
      return true;
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return true;
      // EISDIR, ENOTDIR: Holdfast did not make that. It is left alone and must not stop a sweep.
      // ESTALE does not say that it is gone.
      if (!hasErrno(error, "ENOTEMPTY", "EEXIST", "EBUSY", "EPERM", "EACCES", "EISDIR", "ENOTDIR", "ESTALE"))
        throw error;
    }
  }
  return false;
}

/**
 * For a name that is used once, so that a repeated request cannot hit a file of another process.
 * When it resolves, the name is gone.
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
 * leads to. What cannot be removed now stays; so does a directory that another process keeps adding
 * to.
 */
export async function removeTree(disk: Disk, path: string): Promise<void> {
  try {
    await retryOutage(disk, parentOf(path), () => disk.unlink(path));
    return;
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESTALE")) return;
    // An unlink of a directory answers EISDIR on Linux and EPERM elsewhere. The other codes also
    // come from a directory that nothing may be removed from.
    if (!hasErrno(error, "EISDIR", "EPERM", "EACCES", "EBUSY")) throw error;
  }
  try {
    for (const name of await listToRemove(disk, path)) await removeTree(disk, `${path}/${name}`);
    await retryOutage(disk, parentOf(path), () => disk.rmdir(path));
  } catch (error) {
    if (!hasErrno(error, "ENOENT", "ESTALE", "ENOTDIR", "ENOTEMPTY", "EEXIST", "EBUSY", "EPERM", "EACCES")) throw error;
  }
}
