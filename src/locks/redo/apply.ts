// Applies a committed redo. Every step is a rename into or out of the step's own directory, which
// is removed before the next step begins. A process that arrives late or resumes after a pause
// finds nothing to rename, so identities need not be compared.
import { retryOutage } from "../../durable/publish/retry-outage.ts";
import { parentOf, removeTree, syncNames } from "../../durable/publish/directory.ts";
import { renameOnce } from "../../durable/publish/publish.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import {
  doneDirectory,
  redoDirectory,
  targetOf,
  trashDirectory,
  type RedoFiles,
  type Redo,
  type RedoStep,
} from "./redo.ts";

/**
 * A file that is open elsewhere (SMB, Windows) cannot be renamed now. The pause doubles after each
 * try.
 */
const busyTriesMax = 6;
const busyPauseMs = 20;
/**
 * Each round does all that is left of a step. More rounds are needed only while other processes do
 * the same step.
 */
const roundsMax = 100;

/**
 * Deletes removed files. The process that removed them calls it, and after a crash the next one
 * that opens the locks. Never fails: the trash blocks no process.
 */
export async function emptyTrash(files: RedoFiles): Promise<void> {
  const { disk } = files.ports;
  const trash = trashDirectory(files);
  try {
    for (const name of await disk.list(trash)) await removeTree(disk, `${trash}/${name}`);
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
  }
}

/**
 * Applies what is left of the redo, whichever process began it. Throws RESOURCE_BUSY if a disk
 * error prevents that now: the redo is committed, and no process may pass it.
 */
export async function applyRedo(files: RedoFiles, redo: Redo): Promise<void> {
  try {
    await applySteps(files, redo);
  } catch (error) {
    if (!isHoldfastError(error) || isHoldfastError(error, "RESOURCE_BUSY")) throw error;
    throw stuckError(files.root ?? files.directory, `the disk failed: ${error.message}`, error);
  }
}

async function applySteps(files: RedoFiles, redo: Redo): Promise<void> {
  const directory = redoDirectory(files, redo.id);
  const [only] = redo.steps;
  if (redo.flat && only !== undefined) return await applyFlat(files, only, directory);
  for (const [index, step] of redo.steps.entries()) {
    // The end of the previous step must be durable before this one begins. Otherwise, after a power
    // cut, that step would be repeated on the result of this one.
    if (index > 0) await syncIfThere(files, directory);
    await applyStep(files, step, `${directory}/${index}`);
  }
  // The mark shows a paused committer that its commit counted.
  await renameIfThere(files, directory, doneDirectory(files, redo.id));
}

/**
 * The name `redo/<id>` is never reused, so a process that arrives late finds nothing to rename, or
 * no directory to rename into.
 */
async function applyFlat(files: RedoFiles, step: RedoStep, path: string): Promise<void> {
  if (step.kind !== "in") return await applyStep(files, step, path);
  await moveOut(files, path, targetOf(files, step.target));
  // Also if another process made the rename: it may not have synced it yet.
  for (const parent of parentsOf(files, step)) await syncIfThere(files, parent);
}

/** Does one step. It is done when its directory is gone; only then may the next one begin. */
async function applyStep(files: RedoFiles, step: RedoStep, directory: string): Promise<void> {
  const { disk } = files.ports;
  for (let round = 0; round < roundsMax; round++) {
    await moveAlong(files, step, directory);
    // Durable before the step counts as done: a power cut must not undo it.
    for (const parent of parentsOf(files, step)) await syncIfThere(files, parent);
    try {
      await retryOutage(disk, parentOf(directory), () => disk.rmdir(directory));
      return;
    } catch (error) {
      // The directory's name is never reused, and it existed when the redo was read. So this
      // absence is not a stale answer.
      if (hasErrno(error, "ENOENT")) return;
      if (!hasErrno(error, "ENOTEMPTY", "EEXIST")) throw error;
    }
  }
  throw stuckError(targetOf(files, step.target), "something keeps coming into the directory of its redo");
}

/** Syncs a directory. If it is missing, another process has done this step and made it durable. */
async function syncIfThere({ ports }: RedoFiles, directory: string): Promise<void> {
  try {
    await syncNames(ports.disk, directory);
  } catch (error) {
    if (!hasErrno(error, "ENOENT", "ENOTDIR")) throw error;
  }
}

async function moveAlong(files: RedoFiles, step: RedoStep, directory: string): Promise<void> {
  const target = targetOf(files, step.target);
  switch (step.kind) {
    case "in":
      return await moveOut(files, `${directory}/new`, target);
    case "out":
      await moveIn(files, target, `${directory}/out`);
      // Renamed, not removed: on a share an open file would stay under another name, and keep the
      // directory.
      return await moveOut(files, `${directory}/out`, newTrash(files));
    case "move":
      await moveIn(files, targetOf(files, step.source), `${directory}/moved`);
      return await moveOut(files, `${directory}/moved`, target);
  }
}

/** Renames into the step's directory, which is gone if another process has done the step. */
async function moveIn(files: RedoFiles, from: string, to: string): Promise<void> {
  try {
    await renameIfThere(files, from, to);
  } catch (error) {
    if (!hasErrno(error, "ENOENT")) throw error;
  }
}

async function moveOut(files: RedoFiles, from: string, to: string): Promise<void> {
  try {
    await renameIfThere(files, from, to);
  } catch (error) {
    // A foreign program removed the target's directory. Report it, because retrying would never
    // succeed.
    throw hasErrno(error, "ENOENT") ? stuckError(to, "its directory is missing; make it again", error) : error;
  }
}

/**
 * Renames `from` if it exists; otherwise another process has done it. A rename cannot happen twice,
 * because each goes into or out of the step's own directory.
 */
async function renameIfThere({ ports }: RedoFiles, from: string, to: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await renameOnce(ports.disk, from, to);
      return;
    } catch (error) {
      if (!hasErrno(error, "EBUSY", "EPERM", "EACCES", "ETXTBSY")) throw error;
      if (tries >= busyTriesMax) throw stuckError(to, "it, or what is to go there, is in use", error);
      await ports.clock.sleep(busyPauseMs * 2 ** tries);
    }
  }
}

function newTrash(files: RedoFiles): string {
  return `${trashDirectory(files)}/${randomName(files.ports.random.bytes(16))}`;
}

function parentsOf(files: RedoFiles, step: RedoStep): string[] {
  const targets = step.kind === "move" ? [step.source, step.target] : [step.target];
  return [...new Set(targets.map((target) => parentOf(targetOf(files, target))))];
}

/**
 * Marks an error as that of a committed change, for the committer: the change counts, and is not
 * applied yet.
 */
export function asCommitted(error: unknown): unknown {
  if (!isHoldfastError(error, "RESOURCE_BUSY")) return error;
  const { message, path, blockedBy, worthWaiting } = error;
  return holdfastError("RESOURCE_BUSY", message, { path, blockedBy, worthWaiting, committed: true }, error.cause);
}

export function stuckError(path: string, why: string, cause?: unknown): Error {
  const message = `${path}: a committed change cannot be completed now, because ${why}. Its paths stay locked until it is.`;
  return holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true }, cause);
}
