// Refuses paths on another file system that is mounted inside the tree, before anything is
// committed: a rename cannot cross file systems.
import { isLink, listIfThere } from "../../durable/publish/directory.ts";
import { holdfastError } from "../../errors.ts";
import type { FileStat } from "../../ports/disk.ts";
import type { Tree } from "../tree/tree.ts";

/**
 * Throws CROSS_DEVICE if another file system is mounted at `path` itself: a mount cannot be
 * renamed.
 */
export async function mustNotBeMounted(tree: Tree, path: string, { device }: FileStat): Promise<void> {
  if (device !== (await tree.disk.stat(tree.root)).device) throw mounted(path);
}

/**
 * Throws CROSS_DEVICE for a mount at `path` or below it: the content of the mount would be deleted
 * with the directory.
 */
export async function mustHaveNoMounts(tree: Tree, path: string, found: FileStat): Promise<void> {
  const { disk } = tree;
  const { device } = await disk.stat(tree.root);
  const check = async (at: string, stat: FileStat): Promise<void> => {
    if (stat.device !== device) throw mounted(at);
    if (stat.kind !== "directory") return;
    for (const name of await listIfThere(disk, tree.pathOf(at))) {
      // A link is renamed and removed as a link, wherever it leads, even in a circle.
      if (await isLink(disk, tree.pathOf(`${at}/${name}`))) continue;
      const below = await disk.findStat(tree.pathOf(`${at}/${name}`));
      if (below !== undefined) await check(`${at}/${name}`, below);
    }
  };
  if (!(await isLink(disk, tree.pathOf(path)))) await check(path, found);
}

function mounted(path: string): Error {
  const message = `Another file system is mounted at ${path}, so it cannot be removed or moved in one step. Unmount it first; nothing was done.`;
  return holdfastError("CROSS_DEVICE", message, { path });
}
