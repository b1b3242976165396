// The root that a path belongs to: the nearest directory above it that is a store or has path
// locks. Makes nothing.
import { parentOf } from "../../durable/publish/directory.ts";
import type { Disk } from "../../ports/disk.ts";
import { followLinks } from "./follow-path.ts";

export interface LockRoot {
  /** The directory, without symbolic links: every way to it gives the same root. */
  readonly root: string;
  /** The given path relative to the root; "" is the root itself. */
  readonly path: string;
  /**
   * Whether path locks were ever opened here. Opening them in a store without them makes their
   * table.
   */
  readonly hasLocks: boolean;
}

/**
 * `path` is absolute, and need not exist. On a network mount a root that another machine made
 * moments ago may not be visible yet: a caller that must be sure names the root.
 */
export async function findRoot(disk: Disk, path: string): Promise<LockRoot | undefined> {
  const { path: real } = await followLinks(disk, path);
  for (let root = real; ; root = parentOf(root)) {
    const base = root === "/" ? "" : root;
    const hasLocks = await disk.canOpen(`${base}/.holdfast/ground.json`);
    if (hasLocks || (await disk.canOpen(`${base}/holdfast.json`)))
      return { root, path: real.slice(base.length + 1), hasLocks };
    if (root === "/" || !root.includes("/")) return undefined;
  }
}

/** Whether path locks were ever taken below `root`. */
export async function hasTable(disk: Disk, root: string): Promise<boolean> {
  return await disk.canOpen(`${root === "/" ? "" : root}/.holdfast/table`);
}
