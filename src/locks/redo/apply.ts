// Applies a committed redo. Every step is a rename into or out of the step's own directory, and
// that directory is removed before the next step begins. A process that comes late, twice or after
// a pause finds nothing to rename, so no identities need to be compared.
import { retryOutage } from "../../durable/publish/retry-outage.ts";
import { parentOf, removeTree, syncNames } from "../../durable/publish/directory.ts";
import { renameOnce } from "../../durable/publish/publish.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { doneDirectory, redoDirectory, targetOf, trashDirectory, type RedoFiles } from "./paths.ts";
import type { Redo, RedoStep } from "./record.ts";

/**
 * A file that is open elsewhere (SMB, Windows) cannot be renamed now. Tries, each after twice the
 * pause.
 */
const busyTriesMax = 6;
const busyPauseMs = 20;
/**
 * Each round does all that is left of a step. More are needed only while other processes do the
 * same step.
 */
const roundsMax = 100;

/**
 * Deletes removed files: called by the process that removed them, and after a crash by the next
 * that opens the locks. Never fails: the trash is in no process's way.
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
 * Does what is left of the redo, whichever process began it. RESOURCE_BUSY when it cannot be
 * completed now, for any disk error: it is committed, and no process may pass it.
 */
export async function applyRedo(files: RedoFiles, redo: Redo): Promise<void> {
  try {
    await applySteps(files, redo);
  } catch (error) {
    if (!isHoldfastError(error) || isHoldfastError(error, "RESOURCE_BUSY")) throw error;
    throw stuck(files.root ?? files.directory, `the disk failed: ${error.message}`, error);
  }
}

async function applySteps(files: RedoFiles, redo: Redo): Promise<void> {
  const directory = redoDirectory(files, redo.id);
  for (const [index, step] of redo.steps.entries()) {
    // The end of the previous step must be durable before this one begins: otherwise, after a power
    // cut, it would be done again to what this step made.
    if (index > 0) await syncIfThere(files, directory);
    await applyStep(files, step, `${directory}/${index}`);
  }
  // By this mark a committer that was paused learns that its commit counted.
  await renameIfThere(files, directory, doneDirectory(files, redo.id));
}

/** A step is done when its directory is gone. Only then may the next one begin. */
async function applyStep(files: RedoFiles, step: RedoStep, directory: string): Promise<void> {
  const { disk } = files.ports;
  for (let round = 0; round < roundsMax; round++) {
    await moveAlong(files, step, directory);
    // Durable before the step counts as done: a power cut must not take it back.
    for (const parent of parentsOf(files, step)) await syncIfThere(files, parent);
    try {
      await retryOutage(disk, parentOf(directory), () => disk.rmdir(directory));
      return;
    } catch (error) {
      // The directory's name is never reused and existed when the redo was read: its absence is not
      // an old answer.
      if (hasErrno(error, "ENOENT")) return;
      if (!hasErrno(error, "ENOTEMPTY", "EEXIST")) throw error;
    }
  }
  throw stuck(targetOf(files, step.target), "something keeps coming into the directory of its redo");
}

/** A missing directory means that another process has done this step, and made it durable. */
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
      // Renamed and not removed: on a share an open file would stay under another name, and keep
      // the directory.
      return await moveOut(files, `${directory}/out`, newTrash(files));
    case "move":
      await moveIn(files, targetOf(files, step.source), `${directory}/moved`);
      return await moveOut(files, `${directory}/moved`, target);
  }
}

/** Into the step's directory, which is gone if another process has done the step. */
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
    // A foreign program removed the target's directory. Report it: the step would be tried for
    // ever.
    throw hasErrno(error, "ENOENT") ? stuck(to, "its directory is missing; make it again", error) : error;
  }
}

/**
 * Nothing to rename is fine: another process has done it. A rename cannot happen twice, because
 * each goes into or out of the step's own directory.
 */
async function renameIfThere({ ports }: RedoFiles, from: string, to: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await renameOnce(ports.disk, from, to);
      return;
    } catch (error) {
      if (!hasErrno(error, "EBUSY", "EPERM", "EACCES", "ETXTBSY")) throw error;
      if (tries >= busyTriesMax) throw stuck(to, "it, or what is to go there, is in use", error);
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

/** What the committer itself is told: its own change counts, and is not done yet. */
export function asCommitted(error: unknown): unknown {
  if (!isHoldfastError(error, "RESOURCE_BUSY")) return error;
  const { message, path, blockedBy, worthWaiting } = error;
  return holdfastError("RESOURCE_BUSY", message, { path, blockedBy, worthWaiting, committed: true }, error.cause);
}

export function stuck(path: string, why: string, cause?: unknown): Error {
  const message = `${path}: a committed change cannot be completed now, because ${why}. Its paths stay locked until it is.`;
  return holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true }, cause);
}
