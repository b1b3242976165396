// Whether the steps of a redo can be done at all, one after the other. Found out before the commit: afterwards they would block their paths for ever.
import { parentOf } from "../../durable/publish/directory.ts";
import { holdfastError } from "../../errors.ts";
import { isWithin } from "../../format/path-key.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk, FileStat } from "../../ports/disk.ts";
import { redoDirectory, targetOf, type RedoFiles } from "./apply.ts";
import type { Redo } from "./record.ts";

export type Kind = FileStat["kind"];

/**
 * FILE_EXISTS when a target is in the way, NO_SUCH_FILE when an earlier step takes away the directory of a later one's target. `staged` tells for each step what
 * it brings, if it brings anything.
 */
export async function checkSteps(place: RedoFiles, redo: Redo, staged: readonly (Kind | undefined)[]): Promise<void> {
  const { disk } = place.ports;
  for (const [index, step] of redo.steps.entries()) {
    if (step.kind === "out") continue;
    const find = (path: string): Promise<Kind | undefined> => findKind(disk, whereIs(place, redo, path, index));
    await mustHaveParent(place, redo, step.target, index);
    const coming = step.kind === "in" ? staged[index] : await find(step.source);
    // Nothing to move; or back to where it was.
    if (coming === undefined || (step.kind === "move" && step.source === step.target)) continue;
    const there = await find(step.target);
    if (there === "directory" || (there !== undefined && coming === "directory")) throw inTheWay(place, step.target);
  }
}

/** What no earlier step concerns was looked at when the step was staged. */
async function mustHaveParent(place: RedoFiles, redo: Redo, target: string, index: number): Promise<void> {
  if (!target.includes("/")) return;
  const parent = parentOf(target);
  const now = whereIs(place, redo, parent, index);
  if (now === targetOf(place, parent) || (await findKind(place.ports.disk, now)) === "directory") return;
  const path = targetOf(place, parent);
  const message = `${path} is no directory any more when the change comes to ${target}: an earlier step of it takes it away.`;
  throw holdfastError("NO_SUCH_FILE", message, { path });
}

/** Where that lies now which the first `count` steps will bring to `path`, or leave there; undefined for nothing. */
function whereIs(place: RedoFiles, redo: Redo, path: string, count: number): string | undefined {
  for (let index = count - 1; index >= 0; index--) {
    const step = redo.steps[index];
    if (step === undefined) continue;
    if (isWithin(path, step.target)) {
      const rest = path.slice(step.target.length);
      if (step.kind === "move") return whereIs(place, redo, step.source + rest, index);
      return step.kind === "in" ? `${redoDirectory(place, redo.id)}/${index}/new${rest}` : undefined;
    }
    if (step.kind === "move" && isWithin(path, step.source)) return undefined;
  }
  return targetOf(place, path);
}

async function findKind(disk: Disk, path: string | undefined): Promise<Kind | undefined> {
  if (path === undefined) return undefined;
  try {
    return (await disk.look(path)).kind;
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
}

function inTheWay(place: RedoFiles, target: string): Error {
  const path = targetOf(place, target);
  const message = `${path} is in the way: only a file can be replaced, and only by a file. Take it away by an earlier step.`;
  return holdfastError("FILE_EXISTS", message, { path });
}
