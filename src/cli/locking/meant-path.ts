// Resolves a path on the command line, so that all processes lock the same file, whatever symbolic
// links they use.
import { isAbsolute, relative } from "node:path";
import { HoldfastError } from "../../index.ts";
import { findLockRoot, followPath } from "../../locks/index.ts";
import { makeNewStore } from "../commands/new-store.ts";
import { isDatabase } from "../commands/location.ts";
import type { Run } from "../run.ts";

export interface ResolvedPath {
  readonly absolute: string;
  /**
   * Returns the path in the form that the locks of the root expect. They refuse a path that leads
   * out of the root.
   */
  readonly inside: string;
}

/**
 * `path` is relative to `root`, which has no symbolic links, or absolute. It need not exist. In a
 * database it is only a name.
 */
export async function resolveBelow(root: string, path: string): Promise<ResolvedPath> {
  if (isDatabase(root)) return { absolute: path, inside: path };
  // Resolved by the file system and not as text: `..` after a symbolic link is the parent of the
  // link's target.
  const { path: absolute } = await followPath(isAbsolute(path) ? path : `${root}/${path}`);
  return { absolute, inside: relative(root, absolute) };
}

/**
 * Returns the root of the locks in a store that the user names. Path locks of a directory that is
 * not a store are used as they are. If there is neither, it creates a store, or throws NOT_A_STORE
 * without `create`.
 */
export async function namedRoot(store: string, create: boolean, run: Pick<Run, "output">): Promise<string> {
  const path = isDatabase(store) ? store : (await followPath(store)).path;
  let found = await findLockRoot(path);
  if (found?.path !== "") {
    if (!create) {
      const message = `There is no store in ${store}: is it the right directory, and is the share mounted? \`holdfast init\` makes one.`;
      throw new HoldfastError("NOT_A_STORE", message, { path });
    }
    await makeNewStore(store, run);
    found = await findLockRoot(path);
  }
  return found?.path === "" ? found.root : path;
}
