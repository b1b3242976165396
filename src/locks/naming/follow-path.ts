// What a path means that need not exist: its symbolic links followed as the system does, as far as anything is there.
import { posix } from "node:path";
import { parentOf } from "../../durable/publish/directory.ts";
import { diskError, hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";

export interface FollowedPath {
  /** Absolute, and without symbolic links as far as anything is there. */
  readonly path: string;
  /** As much of it as is there. */
  readonly existing: string;
}

/** As many as Linux follows. */
const linksMax = 40;

/**
 * What exists of the path is resolved; the rest is taken as it is. A link that leads to nothing is followed all the same: whoever writes to it makes what it leads
 * to.
 */
export async function followLinks(disk: Disk, path: string): Promise<FollowedPath> {
  const missing: string[] = [];
  let links = 0;
  for (let at = path; ;) {
    try {
      const existing = await disk.realPath(at);
      const base = existing === "/" ? "" : existing;
      return { path: missing.length === 0 ? existing : `${base}/${missing.join("/")}`, existing };
    } catch (error) {
      // What stands in the way may be replaced by a directory later; and nothing is there under a name that the system refuses.
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

/** Where a link says that it leads; undefined when there is no link. */
async function findTarget(disk: Disk, path: string): Promise<string | undefined> {
  try {
    const target = await disk.readLink(path);
    return posix.resolve(await disk.realPath(parentOf(path)), target);
  } catch (error) {
    // By now there is nothing, or something else.
    if (hasErrno(error, "ENOENT", "ENOTDIR", "EINVAL")) return undefined;
    throw error;
  }
}
