// The subpath "holdfast/files": a tree of plain files that many processes and machines change without losing a write.
import { openNodeFolder, openNodePorts } from "../ports/node/ports.ts";
import { directoryOf } from "../ports/node/location.ts";
import { IndexedFiles } from "./indexed-files.ts";
import { checkFilesOptions } from "./model/arguments.ts";
import type { FileTree, OpenFilesOptions } from "./model/file-tree.ts";
import { openTree } from "./tree/open-tree.ts";

export type * from "./model/file-tree.ts";
export type * from "./model/derived-index.ts";
export type * from "./model/session.ts";

/**
 * The tree of files in `root`, made if there is none. What belongs to it lies in `.holdfast` in that directory. For a
 * store it is the tree of the store: its folder `files`, and its ground.
 */
export async function openFiles(root: string | URL, options: OpenFilesOptions = {}): Promise<FileTree> {
  checkFilesOptions("openFiles", options);
  const path = directoryOf(root);
  const { locks, leaseMs, create, id, ...given } = options;
  const opened = await openTree(await openNodePorts(path), path, { locks, leaseMs, create, id });
  return await IndexedFiles.open(opened, { ...given, leaseMs, openFolder: openNodeFolder });
}
