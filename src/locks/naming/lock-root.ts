// The root that a path belongs to: the nearest directory above it that is a store or has path
// locks. Makes nothing.
import { parentOf } from "../../durable/publish/directory.ts";
import { isStore, StoreLayout } from "../../durable/store/store-record.ts";
import type { Disk } from "../../ports/disk.ts";
import { followLinks } from "./follow-path.ts";

export interface LockRoot {
  /**
   * The tree whose paths are locked, without symbolic links: every way to it gives the same root. In a
   * store that is `files/`.
   */
  readonly root: string;
  /** The given path relative to the root; "" is the root itself, or its store. */
  readonly path: string;
  /**
   * Whether path locks were ever opened here. Opening them in a store without them makes their
   * table.
   */
  readonly hasLocks: boolean;
}

/**
 * `path` is absolute, and need not exist. A path in a store that is not below `files/` is under no
 * lock of that store. On a network mount a root that another machine made moments ago may not be
 * visible yet: a caller that must be sure names the root.
 */
export async function findRoot(disk: Disk, path: string): Promise<LockRoot | undefined> {
  const { path: real } = await followLinks(disk, path);
  for (let at = real; ; at = parentOf(at)) {
    const base = at === "/" ? "" : at;
    const inside = real.slice(base.length + 1);
    const { record, files, ground } = new StoreLayout(base);
    if (await disk.canOpen(record)) {
      const isOfFiles = inside === "" || real === files || real.startsWith(`${files}/`);
      if (!isOfFiles) return undefined;
      return { root: files, path: real.slice(files.length + 1), hasLocks: await disk.canOpen(`${ground}/names.json`) };
    }
    if (await disk.canOpen(`${base}/.holdfast/ground.json`)) return { root: at, path: inside, hasLocks: true };
    if (at === "/" || !at.includes("/")) return undefined;
  }
}

export interface LockPlace {
  /** The tree whose paths are locked. */
  readonly root: string;
  /** Where its locks are. */
  readonly ground: string;
  readonly isInStore: boolean;
}

/** Where the locks of `directory` are: a store has them in its ground, any other directory in `.holdfast`. */
export async function findLockPlace(disk: Disk, directory: string): Promise<LockPlace> {
  const { path } = await followLinks(disk, directory);
  const store = (await isStore(disk, path)) ? path : await findStoreOfTree(disk, path);
  if (store === undefined) return { root: directory, ground: `${directory}/.holdfast`, isInStore: false };
  const { files, ground } = new StoreLayout(store);
  return { root: files, ground, isInStore: true };
}

/** The store whose tree of files `path` is. */
async function findStoreOfTree(disk: Disk, path: string): Promise<string | undefined> {
  const store = parentOf(path);
  return path === new StoreLayout(store).files && (await isStore(disk, store)) ? store : undefined;
}

/** Whether path locks were ever taken there. In a store, leases of its parts are in the same table. */
export async function hasLocks(disk: Disk, { ground, isInStore }: LockPlace): Promise<boolean> {
  return await disk.canOpen(`${ground}/${isInStore ? "names.json" : "table"}`);
}
