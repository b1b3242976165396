// What a path on the command line means: the same file for every process, whatever symbolic links
// lead there.
import { dirname, isAbsolute, relative } from "node:path";
import { HoldfastError } from "../../index.ts";
import { findLockRoot, followPath } from "../../locks/index.ts";

export interface MeantPath {
  readonly absolute: string;
  /**
   * As the locks of the root want it. It may lead out of the root, and is refused by the locks
   * then.
   */
  readonly inside: string;
}

/** `path` is relative to `root`, which has no symbolic links, or absolute. It need not exist. */
export async function meantBelow(root: string, path: string): Promise<MeantPath> {
  // Not joined by text: `..` behind a symbolic link is the parent of what that leads to.
  const { path: absolute } = await followPath(isAbsolute(path) ? path : `${root}/${path}`);
  return { absolute, inside: relative(root, absolute) };
}

/**
 * The root of the locks in a store that the user names. The store need not be there, but the
 * directory that it lies in must: below the empty mount point of a share that is not mounted, a
 * second, empty lock table would begin. INVALID_PATH.
 */
export async function namedRoot(store: string): Promise<string> {
  const { path: root, existing } = await followPath(store);
  if (existing !== root && existing !== dirname(root)) {
    const message = `The store ${store} cannot be made: ${dirname(root)} is not there. Mount the share, make the directory, or correct the path.`;
    throw new HoldfastError("INVALID_PATH", message, { path: root });
  }
  const found = await findLockRoot(root);
  return found?.path === "" ? found.root : root;
}
