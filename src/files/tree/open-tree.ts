// Opening a tree: its ground, its locks, and whose they are.
import type { OpenOptions } from "../../common.ts";
import { Ground } from "../../durable/liveness/ground.ts";
import { ensureDirectory } from "../../durable/publish/directory.ts";
import { holdfastError } from "../../errors.ts";
import { findLockPlace, hasLocks } from "../../locks/naming/lock-root.ts";
import type { PathLocks } from "../../locks/path/path-locks.ts";
import { TablePathLocks } from "../../locks/path/table-path-locks.ts";
import { joinOrLook } from "../../part/part.ts";
import type { Ports } from "../../ports/ports.ts";
import { TreePlace } from "./tree-place.ts";

export interface OpenTreeOptions extends OpenOptions {
  readonly leaseMs?: number | undefined;
  /** Opened by the caller, for the same root. */
  readonly locks?: PathLocks | undefined;
}

export interface OpenedTree {
  readonly place: TreePlace;
  /** Closes what was opened with the tree, and not what the caller gave. */
  close(): Promise<void>;
}

/**
 * Makes the tree if there is none. In a store it is the folder `files`, with the ground of the store. Where nothing can
 * be written, a tree that is there opens for reading.
 */
export async function openTree(ports: Ports, directory: string, options: OpenTreeOptions = {}): Promise<OpenedTree> {
  const { create, id, leaseMs, locks: given } = options;
  const place = await findLockPlace(ports.disk, directory);
  const { root, ground: path } = place;
  if (given !== undefined) return await openUnder(root, given);
  const join = async (): Promise<OpenedTree> => {
    if (create !== false && id === undefined) await ensureDirectory(ports.disk, root);
    return await openOn(await Ground.open(ports, path, { leaseMs, create, id }), root, {});
  };
  const look = async (): Promise<OpenedTree> =>
    await openOn(await Ground.openUnjoined(ports, path, { leaseMs }), root, { toLook: true });
  return await joinOrLook(
    { what: "tree of files" },
    root,
    join,
    (await hasLocks(ports.disk, place)) ? look : undefined,
  );
}

async function openOn(ground: Ground, root: string, options: { readonly toLook?: boolean }): Promise<OpenedTree> {
  try {
    const locks = await TablePathLocks.open(ground, { root, ownsGround: true, ...options });
    return { place: await TreePlace.open({ root, ground, locks: async () => locks }), close: () => locks.close() };
  } catch (error) {
    await ground.close();
    throw error;
  }
}

async function openUnder(root: string, locks: PathLocks): Promise<OpenedTree> {
  if (!(locks instanceof TablePathLocks))
    throw new TypeError("locks must be path locks that `openPathLocks` or a store has opened.");
  if (locks.root !== root) {
    const message = `The locks are of the tree ${locks.root}, and the files of ${root}. Open locks for ${root}, or leave them out.`;
    throw holdfastError("WRONG_STORE", message, { path: root, expected: root, found: locks.root });
  }
  const { ground } = locks.table;
  return { place: await TreePlace.open({ root, ground, locks: async () => locks }), close: async () => undefined };
}
