// Creates and removes directories so that a crash or another process in between does no harm.
import { holdfastError } from "../../errors.ts";
import { diskError, hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { retryOutage } from "./retry-outage.ts";

export function parentOf(path: string): string {
  const parent = path.slice(0, Math.max(path.lastIndexOf("/"), 1));
  // On Windows `C:` alone is the working directory on that drive.
  return parent.length === 2 && parent.endsWith(":") ? `${parent}/` : parent;
}

/**
 * True if `path` has no parent on this disk. On Windows nothing above `//server/share` is a
 * directory, and a question for it waits for a server.
 */
export function isTop({ volume }: Disk, path: string): boolean {
  return parentOf(path) === path || (volume.hasWindowsNames === true && /^\/\/[^/]+(\/[^/]*)?\/?$/.test(path));
}

/**
 * Makes the names in a directory durable. Throws UNSUPPORTED_DISK where the file system cannot:
 * nothing could be acknowledged there.
 */
export async function syncNames(disk: Disk, path: string): Promise<void> {
  await syncIdentified(disk, path);
}

/** Like `syncNames`, and returns the directory's identity, as `syncDirectory` does. */
export async function syncIdentified(disk: Disk, path: string): Promise<string | void> {
  try {
    return await disk.syncDirectory(path);
  } catch (error) {
    if (!hasErrno(error, "EINVAL", "ENOTSUP", "EOPNOTSUPP", "ENOSYS")) throw error;
    const message = `${path}: this file system cannot make the names in a directory durable, so a power cut could lose acknowledged writes. Use another file system.`;
    throw holdfastError("UNSUPPORTED_DISK", message, { path, missing: ["directory sync"] }, error);
  }
}

/**
 * Creates `path` and its missing parents; they are durable when the promise resolves. Other
 * processes may do the same at the same time. `sync` makes the names in a directory durable
 * (default: `syncDirectory`). Throws UNSUPPORTED_DISK if the disk cannot sync a directory.
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
    // Once more, but not in a loop: a dangling symbolic link exists for mkdir and is missing for
    // every other call.
    await makeDirectory(disk, path);
  }
  // Sync even if another process made the directory: it may not have synced it yet, and nothing
  // built on a directory may become durable before the directory.
  await sync(parentOf(path));
}

/** Throws ENOTDIR if something else has the name. */
async function makeDirectory(disk: Disk, path: string): Promise<void> {
  try {
    await retryOutage(disk, parentOf(path), () => disk.mkdir(path));
  } catch (error) {
    if (!hasErrno(error, "EEXIST")) throw error;
    if ((await disk.stat(path)).kind !== "directory") throw diskError("ENOTDIR", "mkdir", path, error);
  }
}

/** True if `path` itself is a symbolic link, even a dangling one. */
export async function isLink(disk: Disk, path: string): Promise<boolean> {
  const slash = path.lastIndexOf("/");
  return await disk.hasLink(path.slice(0, slash), path.slice(slash + 1));
}

/**
 * Lists a directory that is about to be emptied. Throws ENOTDIR for a symbolic link, because
 * nothing behind it belongs to this directory. One gap remains: a process that may write to the
 * parent can replace the directory by a link between the check and the listing, or between the
 * listing and an unlink. Node has no calls relative to an open directory.
 */
async function listToRemove(disk: Disk, path: string): Promise<string[]> {
  if (await isLink(disk, path)) throw diskError("ENOTDIR", "list", path);
  return await disk.list(path);
}

const roundsMax = 3;

/**
 * Removes a directory of files whose holder is gone. Returns true once the directory is gone.
 * Returns false if another process keeps adding files, or if a file cannot be removed now: the next
 * sweep tries again. Also false for a symbolic link, which is left alone. With `yields`, it returns
 * false as soon as it finds that another process is removing the directory; that process continues.
 */
export async function removeDirectory(
  disk: Disk,
  path: string,
  { yields = false }: { readonly yields?: boolean } = {},
): Promise<boolean> {
  for (let round = 0; round < roundsMax; round++) {
    try {
      for (const name of await listToRemove(disk, path))
        if (!(await unlinkIfThere(disk, `${path}/${name}`)) && yields) return false;
      await retryOutage(disk, parentOf(path), () => disk.rmdir(path));
      return true;
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return true;
      // EISDIR, ENOTDIR: Holdfast did not make that entry. It is left alone and must not stop a
      // sweep. ESTALE does not prove that the directory is gone.
      if (!hasErrno(error, "ENOTEMPTY", "EEXIST", "EBUSY", "EPERM", "EACCES", "EISDIR", "ENOTDIR", "ESTALE"))
        throw error;
    }
  }
  return false;
}

/** True if anything has this name now. */
export async function isThere(disk: Disk, path: string): Promise<boolean> {
  try {
    await disk.look(path);
    return true;
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return false;
    throw error;
  }
}

/** Lists the names in a directory. Returns an empty list if there is no such directory. */
export async function listIfThere(disk: Disk, path: string): Promise<string[]> {
  try {
    return await disk.list(path);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return [];
    throw error;
  }
}

/**
 * Removes a name that is used only once, so that a repeated request cannot hit a file of another
 * process. The name is gone when this resolves; false if it was gone before.
 */
export async function unlinkIfThere(disk: Disk, path: string): Promise<boolean> {
  try {
    await retryOutage(disk, parentOf(path), () => disk.unlink(path));
    return true;
  } catch (error) {
    if (!hasErrno(error, "ENOENT")) throw error;
    return false;
  }
}

/**
 * Another program made a directory under the name of a file, or keeps the file open (Windows): it
 * stays, and must not stop a sweep.
 */
export async function unlinkUnlessForeign(disk: Disk, path: string): Promise<void> {
  try {
    await unlinkIfThere(disk, path);
  } catch (error) {
    if (!hasErrno(error, "EISDIR", "EPERM", "EBUSY")) throw error;
  }
}

/**
 * Removes a directory with its content, a file or a symbolic link, but never the target of a link.
 * Entries that cannot be removed now stay; so does a directory to which another process keeps
 * adding.
 */
export async function removeTree(disk: Disk, path: string): Promise<void> {
  try {
    await retryOutage(disk, parentOf(path), () => disk.unlink(path));
    return;
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESTALE")) return;
    // Unlinking a directory fails with EISDIR on Linux and EPERM elsewhere. The other codes also
    // come from a directory from which nothing may be removed.
    if (!hasErrno(error, "EISDIR", "EPERM", "EACCES", "EBUSY")) throw error;
  }
  try {
    for (const name of await listToRemove(disk, path)) await removeTree(disk, `${path}/${name}`);
    await retryOutage(disk, parentOf(path), () => disk.rmdir(path));
  } catch (error) {
    if (!hasErrno(error, "ENOENT", "ESTALE", "ENOTDIR", "ENOTEMPTY", "EEXIST", "EBUSY", "EPERM", "EACCES")) throw error;
  }
}
