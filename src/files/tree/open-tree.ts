// Opens a tree with its ground and its locks, and records which of them to close.
import type { NameRule, OpenOptions } from "../../common.ts";
import { Ground } from "../../durable/liveness/ground.ts";
import { ensureDirectory } from "../../durable/publish/directory.ts";
import { findLonePart } from "../../durable/store/lone-part.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import { holdfastError } from "../../errors.ts";
import { findLockDirectories, hasLocks } from "../../locks/naming/lock-root.ts";
import type { PathLocks } from "../../locks/path/path-locks.ts";
import { TablePathLocks } from "../../locks/path/table-path-locks.ts";
import { joinOrOpenReadOnly } from "../../part/part.ts";
import { Reserve } from "../../part/reserve.ts";
import type { Ports } from "../../ports/ports.ts";
import { FilesLayout } from "./layout.ts";
import { Tree } from "./tree.ts";

export interface OpenTreeOptions extends OpenOptions {
  readonly leaseMs?: number | undefined;
  readonly name?: string | undefined;
  readonly names?: NameRule | undefined;
  /** Locks that the caller opened for the same root. */
  readonly locks?: PathLocks | undefined;
}

export interface OpenedTree {
  readonly tree: Tree;
  /** Closes everything that was opened with the tree, and nothing that the caller passed. */
  close(): Promise<void>;
}

/**
 * Opens a tree, and creates it if it does not exist. In a store it is the folder `files`, with the
 * ground of the store. Where nothing can be written, an existing tree opens for reading.
 */
export async function openTree(ports: Ports, directory: string, options: OpenTreeOptions = {}): Promise<OpenedTree> {
  const { create, id, leaseMs, name, names, locks: given } = options;
  const place = await findLockDirectories(ports.disk, directory);
  const { root, ground: path } = place;
  await mustBeNoOtherPart(ports, directory);
  if (given !== undefined) return await openUnder(root, given, names);
  const join = async (): Promise<OpenedTree> => {
    if (create !== false && id === undefined) await ensureDirectory(ports.disk, root);
    // On a full disk, a process must still be able to join in order to free space.
    const reserve = new Reserve(unjoined(ports), new FilesLayout(path).reserve);
    return await openOn(await reserve.use(() => Ground.open(ports, path, { leaseMs, name, create, id })), root, {
      names,
    });
  };
  const look = async (): Promise<OpenedTree> =>
    await openOn(await Ground.openUnjoined(ports, path, { leaseMs }), root, { listOnly: true });
  return await joinOrOpenReadOnly(
    { what: "tree of files" },
    root,
    join,
    (await hasLocks(ports.disk, place)) ? look : undefined,
  );
}

/**
 * Throws INVALID_PATH for the directory of another part: files in the directory of a log would look
 * like part of it, and move with it.
 */
async function mustBeNoOtherPart({ disk }: Ports, directory: string): Promise<void> {
  const part = await findLonePart(disk, directory);
  if (part === undefined || part.room === "files") return;
  const message = `${directory} is ${part.what} (${part.trace}), so no tree of files was created there. \`holdfast init ${directory} --adopt\` turns it into a store, which has room for both; or choose another directory.`;
  throw holdfastError("INVALID_PATH", message, { path: directory });
}

/**
 * Staging for a process that has not joined: it can use up files of the reserve, but makes none.
 */
function unjoined({ disk, random }: Ports): Staging {
  return {
    disk,
    random,
    directory: async () => {
      throw holdfastError("CLOSED", "This process has not joined yet.", {});
    },
  };
}

async function openOn(
  ground: Ground,
  root: string,
  options: { readonly listOnly?: boolean; readonly names?: NameRule | undefined },
): Promise<OpenedTree> {
  try {
    const locks = await TablePathLocks.open(ground, { root, ownsGround: true, ...options });
    return { tree: await Tree.open(locks, options.names), close: () => locks.close() };
  } catch (error) {
    await ground.close();
    throw error;
  }
}

async function openUnder(root: string, locks: PathLocks, names: NameRule | undefined): Promise<OpenedTree> {
  if (!(locks instanceof TablePathLocks))
    throw new TypeError("locks must be path locks that `openPathLocks` or a store has opened.");
  if (locks.root !== root) {
    const message = `The locks are of the tree ${locks.root}, and the files of ${root}. Open locks for ${root}, or leave them out.`;
    throw holdfastError("WRONG_STORE", message, { path: root, expected: root, found: locks.root });
  }
  return { tree: await Tree.open(locks, names), close: async () => undefined };
}
