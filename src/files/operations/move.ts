// Moves a file or a directory: one grant for both paths, and one step.
import { holdfastError } from "../../errors.ts";
import { isWithin } from "../../format/path-key.ts";
import type { FileStat } from "../../ports/disk.ts";
import type { FileOptions } from "../model/file-tree.ts";
import { noSuchFile } from "../tree/tree-reader.ts";
import type { Located } from "../../locks/naming/lock-key.ts";
import { commit, type OperationContext, type OperationPlan } from "./commit.ts";
import { mustNotBeMounted } from "./one-device.ts";
import { bringInDirectories, findTarget, lockedFor, mustBeReachable, type FoundTarget } from "./target.ts";

interface MovePlan extends OperationPlan {
  readonly source: Located;
  readonly target: Located;
  /** The entry at the source. */
  readonly found: FileStat | undefined;
  readonly atTarget: FoundTarget;
}

export async function movePath(
  context: OperationContext,
  from: string,
  to: string,
  options: FileOptions,
): Promise<void> {
  const { tree } = context;
  await commit<MovePlan>(
    context,
    { name: "move", path: from, ...options },
    {
      plan: async () => {
        const [source, target] = [await tree.locate(from), await tree.locate(to)];
        if (source.path !== target.path && isWithin(target.path, source.path))
          throw holdfastError("INVALID_PATH", `${from} cannot be moved to ${to}, into itself.`, { path: to });
        const [found, atTarget] = [await tree.findLook(source.path), await findTarget(tree, target.path)];
        // Tree locks on both, whatever exists there: nothing may be written below the target of a
        // directory.
        const locked = [source, lockedFor(tree, target, atTarget)];
        return { source, target, found, atTarget, requests: locked.map((path) => ({ ...path, mode: "tree" })) };
      },
      draft: async ({ source, target, found, atTarget }, begin) => {
        if (found === undefined) throw noSuchFile(from);
        if (source.path === target.path) return undefined;
        mustBeReachable(target.path, atTarget);
        await mustNotBeMounted(tree, source.path, found);
        const { missing } = atTarget;
        if (missing !== undefined) await bringInDirectories(tree, begin, { highest: missing, target: target.path });
        const change = { kind: "moved", path: target.path, from: source.path } as const;
        return { change, stage: (steps) => steps.move(source, target), takesAway: true };
      },
    },
  );
}
