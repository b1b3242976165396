// Finds the root to which a path belongs: the nearest directory above it that is a store or has path locks. Creates
// nothing.
import { isLink, isTop, parentOf } from "../../durable/publish/directory.ts";
import { findStoreAbove, isStore, StoreLayout } from "../../durable/store/store-record.ts";
import { holdfastError } from "../../errors.ts";
import type { Disk } from "../../ports/disk.ts";
import { followLinks } from "./follow-path.ts";

/** The root whose locks cover a path. */
export interface LockRoot {
  /**
   * The tree whose paths are locked, without symbolic links: every path to it gives the same root.
   * In a store that is `files/`.
   */
  readonly root: string;
  /** The given path relative to the root; "" for the root itself, or its store. */
  readonly path: string;
  /** True if path locks were ever opened here. Opening them in a store that has none creates their table. */
  readonly hasLocks: boolean;
}

/**
 * `path` is absolute and need not exist. A path in a store, but not below its `files/`, is not covered by the locks
 * of that store. On a network mount this may miss a root that another machine created moments ago: if a caller must
 * be sure, it names the root itself.
 */
export async function findRoot(disk: Disk, path: string): Promise<LockRoot | undefined> {
  const { path: real } = await followLinks(disk, path);
  for (let at = real; ; at = parentOf(at)) {
    // The root of a file system, or of a drive of Windows, ends with a slash.
    const base = at.endsWith("/") ? at.slice(0, -1) : at;
    const inside = real.slice(base.length + 1);
    const { record, files, ground } = new StoreLayout(base);
    if (await disk.canOpen(record)) {
      const isOfFiles = inside === "" || real === files || real.startsWith(`${files}/`);
      if (!isOfFiles) return undefined;
      return { root: files, path: real.slice(files.length + 1), hasLocks: await disk.canOpen(`${ground}/names.json`) };
    }
    if (await disk.canOpen(`${base}/.holdfast/ground.json`)) return { root: at, path: inside, hasLocks: true };
    if (isTop(disk, at)) return undefined;
  }
}

export interface LockDirectories {
  /** The tree whose paths are locked. */
  readonly root: string;
  /** The directory that contains its locks. */
  readonly ground: string;
  readonly isInStore: boolean;
}

/**
 * Finds the locks of `directory`. A store has them in its ground, any other directory in `.holdfast`. Throws
 * INVALID_PATH below the tree of a store, where a second table would admit a second holder.
 */
export async function findLockDirectories(disk: Disk, directory: string): Promise<LockDirectories> {
  const { path } = await followLinks(disk, directory);
  const store = (await isStore(disk, path)) ? path : await findStoreOfTree(disk, path);
  if (store === undefined) await mustBeOutsideStores(disk, path);
  if (store === undefined) return { root: directory, ground: `${directory}/.holdfast`, isInStore: false };
  const { files, ground } = new StoreLayout(store);
  await mustBeDirectory(disk, files);
  return { root: files, ground, isInStore: true };
}

async function mustBeOutsideStores(disk: Disk, path: string): Promise<void> {
  const store = await findStoreAbove(disk, path);
  if (store === undefined || !path.startsWith(`${store.files}/`)) return;
  const inside = path.slice(store.files.length + 1);
  const message = `${path} lies in the store ${store.directory}, whose locks reach it. Open the locks of the store, and lock the paths below "${inside}".`;
  throw holdfastError("INVALID_PATH", message, { path });
}

/**
 * Throws INVALID_PATH if the tree of a store is a symbolic link: a process that opens the link's target would not
 * find the store.
 */
export async function mustBeDirectory(disk: Disk, files: string): Promise<void> {
  if (!(await isLink(disk, files))) return;
  const message = `${files} is a symbolic link, and processes that come by its target would not find the store. Put the directory itself there.`;
  throw holdfastError("INVALID_PATH", message, { path: files });
}

/** Returns the store whose `files/` is `path`. */
async function findStoreOfTree(disk: Disk, path: string): Promise<string | undefined> {
  const store = parentOf(path);
  return path === new StoreLayout(store).files && (await isStore(disk, store)) ? store : undefined;
}

/** True if path locks were ever acquired there. In a store the same table also has the leases of its parts. */
export async function hasLocks(disk: Disk, { ground, isInStore }: LockDirectories): Promise<boolean> {
  return await disk.canOpen(`${ground}/${isInStore ? "names.json" : "table"}`);
}
