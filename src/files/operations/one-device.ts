// Another file system that is mounted inside the tree: what is on it cannot be renamed, so it is refused before
// anything is committed.
import { isLink } from "../../durable/publish/directory.ts";
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { FileStat } from "../../ports/disk.ts";
import type { TreePlace } from "../tree/tree-place.ts";

/** CROSS_DEVICE when another file system is mounted at `path` itself: a mount cannot be renamed. */
export async function mustNotBeMounted(place: TreePlace, path: string, { device }: FileStat): Promise<void> {
  if (device !== (await place.disk.stat(place.root)).device) throw mounted(path);
}

/** The same at `path` and below it: what is on a mount would be deleted with the directory. */
export async function mustHaveNoMounts(place: TreePlace, path: string, found: FileStat): Promise<void> {
  const { disk } = place;
  const { device } = await disk.stat(place.root);
  const check = async (at: string, stat: FileStat): Promise<void> => {
    if (stat.device !== device) throw mounted(at);
    if (stat.kind !== "directory") return;
    for (const name of await namesIn(place, at)) {
      // A link is renamed and removed as such, wherever it leads, also in a circle.
      if (await isLink(disk, place.pathOf(`${at}/${name}`))) continue;
      const below = await disk.findStat(place.pathOf(`${at}/${name}`));
      if (below !== undefined) await check(`${at}/${name}`, below);
    }
  };
  if (!(await isLink(disk, place.pathOf(path)))) await check(path, found);
}

async function namesIn(place: TreePlace, directory: string): Promise<string[]> {
  try {
    return await place.disk.list(place.pathOf(directory));
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return [];
    throw error;
  }
}

function mounted(path: string): Error {
  const message = `Another file system is mounted at ${path}, so it cannot be removed or moved in one step. Unmount it first; nothing was done.`;
  return holdfastError("CROSS_DEVICE", message, { path });
}
