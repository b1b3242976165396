// Preflight of a redo: checks that its steps can be done, one after the other. It runs before the
// commit, because a committed step that can never be done blocks its paths forever.
import { parentOf } from "../../durable/publish/directory.ts";
import { holdfastError } from "../../errors.ts";
import { isWithin } from "../../format/path-key.ts";
import { findUnportable } from "../../format/name.ts";
import { diskError, hasErrno } from "../../ports/disk-error.ts";
import type { Disk, FileStat } from "../../ports/disk.ts";
import { isInGround, redoDirectory, targetOf, type RedoFiles, type Redo } from "./redo.ts";

export type EntryKind = FileStat["kind"];

/** The device of each ground. It is read again if a target is on another one. */
const groundDevices = new WeakMap<RedoFiles, string>();

async function isOfGround(files: RedoFiles, device: string): Promise<boolean> {
  if (groundDevices.get(files) === device) return true;
  const ground = await files.ports.disk.stat(files.directory);
  groundDevices.set(files, ground.device);
  return ground.device === device;
}

/**
 * Checks a target when its step is staged. Throws NO_SUCH_FILE for a missing directory,
 * CROSS_DEVICE for another file system, NO_PERMISSION where this user cannot rename, and
 * INVALID_PATH for a name that the disk would refuse.
 */
export async function checkTarget(files: RedoFiles, path: string): Promise<void> {
  const { disk } = files.ports;
  const fault = disk.volume.hasWindowsNames ? findUnportable(path) : undefined;
  if (fault !== undefined)
    throw holdfastError("INVALID_PATH", `${path} cannot be changed: ${fault.why} (${JSON.stringify(fault.name)}).`, {
      path,
    });
  const parent = parentOf(targetOf(files, path));
  const there = await findStat(disk, parent);
  if (there?.kind !== "directory") {
    const message = `${parent} is not a directory. Make it first, under a lock on it.`;
    throw holdfastError("NO_SUCH_FILE", message, { path: parent });
  }
  if (!(await isOfGround(files, there.device))) {
    const message = `${parent} is on another file system than ${files.directory}: a file cannot be renamed from one to the other.`;
    throw holdfastError("CROSS_DEVICE", message, { path: parent });
  }
  const target = targetOf(files, path);
  if ((await disk.mayRename?.(target)) === false) throw diskError("EACCES", "rename", target);
}

/**
 * Throws INVALID_PATH for the root, and for the directory of the locks. `located` is the resolved
 * `path`.
 */
export function mustBeChangeable(files: RedoFiles, path: string, located: string): void {
  if (located === "") throw holdfastError("INVALID_PATH", "The root itself cannot be changed.", { path });
  if (!isInGround(files, located)) return;
  throw holdfastError("INVALID_PATH", `${path} is part of the locks themselves, and cannot be changed.`, { path });
}

/**
 * Throws FILE_EXISTS if a target exists, and NO_SUCH_FILE if an earlier step removes the directory
 * of a later target. `staged` has the kind of the entry that each step brings, if any.
 */
export async function checkSteps(
  files: RedoFiles,
  redo: Redo,
  staged: readonly (EntryKind | undefined)[],
): Promise<void> {
  const { disk } = files.ports;
  for (const [index, step] of redo.steps.entries()) {
    if (step.kind === "out") continue;
    const find = (path: string): Promise<EntryKind | undefined> => findKind(disk, whereIs(files, redo, path, index));
    await mustHaveParent(files, redo, step.target, index);
    const coming = step.kind === "in" ? staged[index] : await find(step.source);
    // Nothing to move, or source and target are the same.
    if (coming === undefined || (step.kind === "move" && step.source === step.target)) continue;
    const there = await find(step.target);
    if (there === "directory" || (there !== undefined && coming === "directory")) throw inTheWay(files, step.target);
  }
}

/**
 * Throws NO_SUCH_FILE if an earlier step removes the directory of `target`. A directory that no
 * earlier step touches was checked when the step was staged.
 */
async function mustHaveParent(files: RedoFiles, redo: Redo, target: string, index: number): Promise<void> {
  if (!target.includes("/")) return;
  const parent = parentOf(target);
  const now = whereIs(files, redo, parent, index);
  if (now === targetOf(files, parent) || (await findKind(files.ports.disk, now)) === "directory") return;
  const path = targetOf(files, parent);
  const message = `${path} is no longer a directory when ${target} is changed: an earlier step removes it. Change the order of the steps.`;
  throw holdfastError("NO_SUCH_FILE", message, { path });
}

/**
 * Returns the current path of the content that will be at `path` after the first `count` steps;
 * undefined if there will be none.
 */
function whereIs(files: RedoFiles, redo: Redo, path: string, count: number): string | undefined {
  for (let index = count - 1; index >= 0; index--) {
    const step = redo.steps[index];
    if (step === undefined) continue;
    if (isWithin(path, step.target)) {
      const rest = path.slice(step.target.length);
      if (step.kind === "move") return whereIs(files, redo, step.source + rest, index);
      return step.kind === "in" ? `${redoDirectory(files, redo.id)}/${index}${rest}` : undefined;
    }
    if (step.kind === "move" && isWithin(path, step.source)) return undefined;
  }
  return targetOf(files, path);
}

async function findKind(disk: Disk, path: string | undefined): Promise<EntryKind | undefined> {
  return path === undefined ? undefined : (await findStat(disk, path))?.kind;
}

/**
 * Stats a path as the server knows it. On a share, `stat` may describe an earlier state than what
 * another machine wrote under its own lock.
 */
export async function findStat(disk: Disk, path: string): Promise<FileStat | undefined> {
  try {
    return await disk.look(path);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
}

function inTheWay(files: RedoFiles, target: string): Error {
  const path = targetOf(files, target);
  const message = `${path} exists, and only a file can be replaced, by a file. Remove it first, or choose another name.`;
  return holdfastError("FILE_EXISTS", message, { path });
}
