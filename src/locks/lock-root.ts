// Whose locks a path falls under: the nearest directory above it that is a store, or has path locks of its own. Looks only, and makes nothing.
import { posix } from "node:path";
import { parentOf } from "../durable/directory.ts";
import { diskError, hasErrno } from "../ports/disk-error.ts";
import type { Disk } from "../ports/disk.ts";

export interface LockRoot {
  /** The directory, without symbolic links on the way: whoever comes by another way finds the same. */
  readonly root: string;
  /** What was asked about, relative to the root; "" is the root itself. */
  readonly path: string;
  /** Whether path locks were ever opened here. Opening them in a store where they were not makes their table. */
  readonly hasLocks: boolean;
}

export interface FollowedPath {
  /** Absolute, and without symbolic links as far as anything is there. */
  readonly path: string;
  /** As much of it as is there. */
  readonly existing: string;
}

/**
 * `path` is absolute, and need not exist. On a network mount a root that another machine made moments ago may not be seen yet: who must be sure names the root
 * himself.
 */
export async function findRoot(disk: Disk, path: string): Promise<LockRoot | undefined> {
  const { path: real } = await follow(disk, path);
  for (let root = real; ; root = parentOf(root)) {
    const base = root === "/" ? "" : root;
    const hasLocks = await disk.canOpen(`${base}/.holdfast/ground.json`);
    if (hasLocks || (await disk.canOpen(`${base}/holdfast.json`)))
      return { root, path: real.slice(base.length + 1), hasLocks };
    if (root === "/" || !root.includes("/")) return undefined;
  }
}

/** As many as Linux follows. */
const linksMax = 40;

/**
 * What exists of the path is resolved; the rest is taken as it is. A link that leads to nothing is followed all the same: whoever writes to it makes what it leads
 * to.
 */
export async function follow(disk: Disk, path: string): Promise<FollowedPath> {
  const missing: string[] = [];
  let links = 0;
  for (let at = path; ;) {
    try {
      const existing = await disk.realPath(at);
      const base = existing === "/" ? "" : existing;
      return { path: missing.length === 0 ? existing : `${base}/${missing.join("/")}`, existing };
    } catch (error) {
      if (!hasErrno(error, "ENOENT") || parentOf(at) === at) throw error;
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
