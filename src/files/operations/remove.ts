// Removes a file or a directory: first from the index, then from the tree in one step.
import type { FileStat } from "../../ports/disk.ts";
import type { Located } from "../../locks/naming/lock-key.ts";
import type { FileOptions } from "../model/file-tree.ts";
import { noSuchFile } from "../tree/tree-reader.ts";
import { commit, type OperationContext, type OperationPlan } from "./commit.ts";
import { mustHaveNoMounts } from "./one-device.ts";

interface RemovePlan extends OperationPlan {
  readonly target: Located;
  readonly found: FileStat | undefined;
}

export async function removePath(context: OperationContext, path: string, options: FileOptions): Promise<void> {
  const { tree } = context;
  await commit<RemovePlan>(
    context,
    { name: "remove", path, ...options },
    {
      // Locks even a missing path: acquiring the lock completes what a dead process committed, and
      // the path is checked again.
      plan: async () => {
        const target = await tree.locate(path);
        const found = await tree.findLook(target.path);
        const mode = found?.kind === "directory" ? "tree" : "exact";
        return { target, found, requests: [{ ...target, mode }] };
      },
      draft: async ({ target, found }) => {
        if (found === undefined) throw noSuchFile(path);
        await mustHaveNoMounts(tree, target.path, found);
        const change = { kind: "removed", path: target.path } as const;
        return { change, stage: (steps) => steps.out(target), takesAway: true };
      },
    },
  );
}
