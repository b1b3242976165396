// Moving a file or a directory: one grant for both ends, and one step for both.
import { holdfastError } from "../../errors.ts";
import { isWithin } from "../../format/path-key.ts";
import type { FileStat } from "../../ports/disk.ts";
import type { FileOptions } from "../model/file-tree.ts";
import { noSuchFile } from "../tree/tree-reader.ts";
import { bringInDirectories, lookAtTarget, mustHaveWay, type TargetLook } from "./missing-directories.ts";
import { mustNotBeMounted } from "./one-device.ts";
import type { Plan, TreeWork } from "./tree-work.ts";

interface MovePlan extends Plan {
  readonly source: string;
  readonly target: string;
  /** What is to be moved. */
  readonly found: FileStat | undefined;
  readonly way: TargetLook;
}

export async function movePath(work: TreeWork, from: string, to: string, options: FileOptions): Promise<void> {
  const announced = await work.underLock(
    { name: "move", path: from, ...options },
    () => lookForMove(work, from, to),
    async (granted, { source, target, found, way }) => {
      if (found === undefined) throw noSuchFile(from);
      if (source === target) return undefined;
      mustHaveWay(target, way);
      await mustNotBeMounted(work.place, source, found);
      if (way.missing !== undefined) await bringInDirectories(work.place, granted, { highest: way.missing, target });
      const draft = await granted.draft();
      const stage = (): Promise<void> => draft.move(source, target);
      const change = { kind: "moved", path: target, from: source } as const;
      return await work.commit(draft, { change, stage, takesAway: true });
    },
  );
  if (announced !== undefined) await work.tell(announced);
}

/** Both ends as trees, whatever is there: the target of a directory must not be written below. */
async function lookForMove({ place }: TreeWork, from: string, to: string): Promise<MovePlan> {
  const [{ path: source }, { path: target }] = [await place.locate(from), await place.locate(to)];
  if (source !== target && isWithin(target, source))
    throw holdfastError("INVALID_PATH", `${from} cannot be moved to ${to}, into itself.`, { path: to });
  const [found, way] = [await place.findLook(source), await lookAtTarget(place, target)];
  const requests = [source, way.missing ?? target].map((path) => ({ path, mode: "tree" as const }));
  return { source, target, found, way, requests };
}
