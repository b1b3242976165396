// Follows symbolic links: resolves a path, whether or not it exists. All of Holdfast uses this.
import { posix } from "node:path";
import { parentOf } from "../../durable/publish/directory.ts";
import { diskError, hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";

/** A path whose symbolic links are resolved. */
export interface FollowedPath {
  /** Absolute, without symbolic links in the part that exists. */
  readonly path: string;
  /** The part of `path` that exists. */
  readonly existing: string;
}

/** The same limit as on Linux. */
const linksMax = 40;

/**
 * Resolves the part of the path that exists, and appends the rest unchanged. A dangling link is followed too: writing
 * to it creates its target.
 */
export async function followLinks(disk: Disk, path: string): Promise<FollowedPath> {
  const missing: string[] = [];
  let links = 0;
  for (let at = path; ;) {
    try {
      const existing = await disk.realPath(at);
      // The root of the file system or of a drive ends with a slash.
      const base = existing.endsWith("/") ? existing : `${existing}/`;
      return { path: missing.length === 0 ? existing : `${base}${missing.join("/")}`, existing };
    } catch (error) {
      // A file in the path may be replaced by a directory later. Nothing can exist under a name that the system
      // refuses.
      if (!hasErrno(error, "ENOENT", "ENOTDIR", "EINVAL") || parentOf(at) === at) throw error;
    }
    const target = await findTarget(disk, at);
    if (target === undefined) {
      missing.unshift(at.slice(at.lastIndexOf("/") + 1));
      at = parentOf(at);
    } else if (++links > linksMax) throw diskError("ELOOP", "readlink", path);
    else at = target;
  }
}

/** Returns the target of a link, or undefined if `path` is not a link. */
async function findTarget(disk: Disk, path: string): Promise<string | undefined> {
  try {
    const target = await disk.readLink(path);
    const isOnDrive = disk.volume.hasWindowsNames === true && /^[a-z]:\//i.test(target);
    return isOnDrive ? target : resolveFrom(await disk.realPath(parentOf(path)), target);
  } catch (error) {
    // The link is gone, or was never one.
    if (hasErrno(error, "ENOENT", "ENOTDIR", "EINVAL")) return undefined;
    throw error;
  }
}

/** A path of Windows begins with a drive, which `posix` would take for a relative name. */
function resolveFrom(directory: string, target: string): string {
  const drive = /^[a-z]:(?=\/)/i.exec(directory)?.[0] ?? "";
  return drive + posix.resolve(directory.slice(drive.length), target);
}
