// The subpath "holdfast/files": a tree of plain files that many processes and machines change without losing a write.
import { openLocation, openNodeFolder, openNodePorts } from "../ports/node/ports.ts";
import { directoryOf } from "../ports/node/location.ts";
import { StoreLayout } from "../durable/store/store-record.ts";
import { IndexedFiles } from "./indexed-files.ts";
import { checkFilesOptions } from "./model/arguments.ts";
import type { FileTree, OpenFilesOptions } from "./model/file-tree.ts";
import { FilesLayout } from "./tree/layout.ts";
import { openTree } from "./tree/open-tree.ts";

export type * from "./model/file-tree.ts";
export type * from "./model/derived-index.ts";
export type * from "./model/session.ts";

/**
 * Returns the root of the tree of files at `directory`: that of a store, or the directory itself;
 * an empty list if there is none. Creates nothing, and omits a store that has never used its files.
 */
export async function listTrees(directory: string | URL): Promise<string[]> {
  const path = directoryOf(directory);
  const { disk } = await openNodePorts(path);
  for (const ground of [new StoreLayout(path).ground, `${path}/.holdfast`]) {
    const { changes, documents } = new FilesLayout(ground);
    for (const trace of [changes, documents]) if ((await disk.findStat(trace)) !== undefined) return [path];
  }
  return [];
}

/**
 * Opens the tree of files in `root` and creates it if it does not exist. Its records live in
 * `.holdfast` in that directory. In a store it is the tree of the store: its folder `files`, and
 * its ground. `memory:` opens a new tree in memory each time.
 *
 * Throws NOT_A_STORE or WRONG_STORE if the directory is not what `create` and `id` ask for, and INVALID_PATH
 * for a directory below the files of a store.
 *
 * @example
 * ```ts
 * await using files = await openFiles("/mnt/shop/files");
 * await files.write("notes/today.md", "Count the shelves.");
 * await files.settled();
 * const hits = await files.search("shelves", { under: "notes" });
 * ```
 */
export async function openFiles(root: string | URL, options: OpenFilesOptions = {}): Promise<FileTree> {
  checkFilesOptions("openFiles", options);
  const { ports, path } = await openLocation(root);
  const { locks, leaseMs, name, names, create, id, ...given } = options;
  const opened = await openTree(ports, path, { locks, leaseMs, name, names, create, id });
  return await IndexedFiles.open(opened, { ...given, leaseMs, openFolder: openNodeFolder });
}
