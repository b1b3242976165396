// Names in a box. Unlike `isThere` and `listIfThere` of durable/publish, these accept what other
// programs leave in a box. A symbolic link to itself counts as existing, and as an empty directory.
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";

/** True if `path` exists, according to the file system and not to a cache. */
export async function nameExists(disk: Disk, path: string): Promise<boolean> {
  try {
    await disk.look(path);
    return true;
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return false;
    if (hasErrno(error, "ELOOP")) return true;
    throw error;
  }
}

/** Lists a directory, or at most `countMax` of its names; an empty list if it does not exist or is not a directory. */
export async function namesIn(disk: Disk, directory: string, countMax?: number): Promise<string[]> {
  try {
    return countMax === undefined ? await disk.list(directory) : await disk.listSome(directory, countMax);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR", "ESTALE", "ELOOP")) return [];
    throw error;
  }
}
