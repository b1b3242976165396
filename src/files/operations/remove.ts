// Removing a file or a directory: out of the index first, then out of the tree, in one step.
import type { FileStat } from "../../ports/disk.ts";
import type { FileOptions } from "../model/file-tree.ts";
import { noSuchFile } from "../tree/tree-reader.ts";
import { mustHaveNoMounts } from "./one-device.ts";
import type { Plan, TreeWork } from "./tree-work.ts";

interface RemovePlan extends Plan {
  readonly target: string;
  readonly found: FileStat | undefined;
}

export async function removePath(work: TreeWork, path: string, options: FileOptions): Promise<void> {
  const change = await work.underLock(
    { name: "remove", path, ...options },
    () => lookForRemoval(work, path),
    async (granted, { target, found }) => {
      if (found === undefined) throw noSuchFile(path);
      await mustHaveNoMounts(work.place, target, found);
      const draft = await granted.draft();
      const stage = (): Promise<void> => draft.out(target);
      return await work.commit(draft, { change: { kind: "removed", path: target }, stage, takesAway: true });
    },
  );
  await work.tell(change);
}

/**
 * Also for what is not there the lock is taken: what a dead process has committed is completed before the look that
 * counts.
 */
async function lookForRemoval({ place }: TreeWork, path: string): Promise<RemovePlan> {
  const { path: target } = await place.locate(path);
  const found = await place.findLook(target);
  const mode = found?.kind === "directory" ? ("tree" as const) : ("exact" as const);
  return { target, found, requests: [{ path: target, mode }] };
}
