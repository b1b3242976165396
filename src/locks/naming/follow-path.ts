// The one way to follow symbolic links: what a path leads to, whether or not anything exists there.
import { posix } from "node:path";
import { parentOf } from "../../durable/publish/directory.ts";
import { diskError, hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";

export interface FollowedPath {
  /** Absolute, without symbolic links in the part that exists. */
  readonly path: string;
  /** The part of `path` that exists. */
  readonly existing: string;
}

/** As many as Linux follows. */
const linksMax = 40;

/**
 * Resolves the part of the path that exists and appends the rest as it is. A link that leads to
 * nothing is followed too: writing to it creates its target.
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
      // A file in the way may be replaced by a directory later, and nothing exists under a name
      // that the system refuses.
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

/** Where a link leads; undefined when there is no link. */
async function findTarget(disk: Disk, path: string): Promise<string | undefined> {
  try {
    const target = await disk.readLink(path);
    return posix.resolve(await disk.realPath(parentOf(path)), target);
  } catch (error) {
    // By now there is nothing, or not a link.
    if (hasErrno(error, "ENOENT", "ENOTDIR", "EINVAL")) return undefined;
    throw error;
  }
}
