// Applies a committed redo: every step is a rename out of or into the step's own directory, and that directory is gone before anything goes on. So whoever comes
// late, twice or delayed finds nothing to rename, and no identity needs to be compared.
import { retryOutage } from "../../durable/publish/retry-outage.ts";
import { parentOf, removeTree, syncNames } from "../../durable/publish/directory.ts";
import { renameOnce } from "../../durable/publish/publish.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import { isWithin } from "../../format/path-key.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Redo, RedoStep } from "./record.ts";

/** What is open elsewhere (SMB, Windows) cannot be renamed now: asked again so often, each time after twice as long. */
const busyTriesMax = 6;
const busyPauseMs = 20;
/** Each round does all that is left of a step; more are needed only when others do the same step at the same time. */
const roundsMax = 100;

/** Where the redos of one set of locks lie. */
export interface RedoFiles {
  readonly ports: Pick<Ports, "disk" | "clock" | "random">;
  /** Of the tree that the steps change; undefined for locks that are of no tree. */
  readonly root: string | undefined;
  /** Of the ground. */
  readonly directory: string;
}

export function redoDirectory({ directory }: RedoFiles, id: string): string {
  return `${directory}/redo/${id}`;
}
export function doneDirectory({ directory }: RedoFiles, id: string): string {
  return `${directory}/done/${id}`;
}
export function trashDirectory({ directory }: RedoFiles): string {
  return `${directory}/trash`;
}

/** Deletes what was removed: by the one who removed it, and after a crash by the next who opens the locks. Never fails: what stays is in no one's way. */
export async function emptyTrash(place: RedoFiles): Promise<void> {
  const { disk } = place.ports;
  const trash = trashDirectory(place);
  try {
    for (const name of await disk.list(trash)) await removeTree(disk, `${trash}/${name}`);
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
  }
}

/** Does what is left of it, whoever began. RESOURCE_BUSY when that cannot be done now, whatever the disk says: it is committed, and nobody may go on. */
export async function applyRedo(place: RedoFiles, redo: Redo): Promise<void> {
  try {
    await applySteps(place, redo);
  } catch (error) {
    if (!isHoldfastError(error) || isHoldfastError(error, "RESOURCE_BUSY")) throw error;
    throw stuck(place.root ?? place.directory, `the disk failed: ${error.message}`, error);
  }
}

async function applySteps(place: RedoFiles, redo: Redo): Promise<void> {
  const directory = redoDirectory(place, redo.id);
  for (const [index, step] of redo.steps.entries()) {
    // That the step before is over must not be forgotten when this one has begun, or it would be done again to what this one made.
    if (index > 0) await syncIfThere(place, directory);
    await applyStep(place, step, `${directory}/${index}`);
  }
  // The mark by which a committer that slept learns that it counted.
  await renameIfThere(place, directory, doneDirectory(place, redo.id));
}

/** Done when its directory is removed; only then may the next one begin. */
async function applyStep(place: RedoFiles, step: RedoStep, directory: string): Promise<void> {
  const { disk } = place.ports;
  for (let round = 0; round < roundsMax; round++) {
    await moveAlong(place, step, directory);
    // Before anything says that it is done: what a power cut takes back must be done again.
    for (const parent of parentsOf(place, step)) await syncIfThere(place, parent);
    try {
      await retryOutage(disk, parentOf(directory), () => disk.rmdir(directory));
      return;
    } catch (error) {
      // Its name is made once and was there when it was learnt of, so its absence is no old answer.
      if (hasErrno(error, "ENOENT")) return;
      if (!hasErrno(error, "ENOTEMPTY", "EEXIST")) throw error;
    }
  }
  throw stuck(targetOf(place, step.target), "something keeps coming into the directory of its redo");
}

/** Gone means that somebody came after us: then we were slept past, and they have made it durable. */
async function syncIfThere({ ports }: RedoFiles, directory: string): Promise<void> {
  try {
    await syncNames(ports.disk, directory);
  } catch (error) {
    if (!hasErrno(error, "ENOENT", "ENOTDIR")) throw error;
  }
}

async function moveAlong(place: RedoFiles, step: RedoStep, directory: string): Promise<void> {
  const target = targetOf(place, step.target);
  switch (step.kind) {
    case "in":
      return await moveOut(place, `${directory}/new`, target);
    case "out":
      await moveIn(place, target, `${directory}/out`);
      // Renamed and not removed: what is open on a share would stay there under another name, and keep the directory.
      return await moveOut(place, `${directory}/out`, newTrash(place));
    case "move":
      await moveIn(place, targetOf(place, step.source), `${directory}/moved`);
      return await moveOut(place, `${directory}/moved`, target);
  }
}

/** Into the step's directory, which is gone if another process has come after us. */
async function moveIn(place: RedoFiles, from: string, to: string): Promise<void> {
  try {
    await renameIfThere(place, from, to);
  } catch (error) {
    if (!hasErrno(error, "ENOENT")) throw error;
  }
}

/** Out of the step's directory. */
async function moveOut(place: RedoFiles, from: string, to: string): Promise<void> {
  try {
    await renameIfThere(place, from, to);
  } catch (error) {
    // A foreign program took away the target's directory: that has to be said, or the step would be tried for ever.
    throw hasErrno(error, "ENOENT") ? stuck(to, "its directory is missing; make it again", error) : error;
  }
}

/** Nothing to rename is fine: another process has. To rename again what was renamed is impossible: each rename goes out of or into the step's own directory. */
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

function newTrash(place: RedoFiles): string {
  return `${trashDirectory(place)}/${randomName(place.ports.random.bytes(16))}`;
}

function parentsOf(place: RedoFiles, step: RedoStep): string[] {
  const targets = step.kind === "move" ? [step.source, step.target] : [step.target];
  return [...new Set(targets.map((target) => parentOf(targetOf(place, target))))];
}

/** Whether a change of `path` would change the ground, in whatever case it is spelled: on some disks that is one name. */
export function isInGround(place: RedoFiles, path: string): boolean {
  const [ground, target] = [fold(place.directory), fold(targetOf(place, path))];
  return isWithin(target, ground) || isWithin(ground, target);
}

function fold(path: string): string {
  return path.normalize("NFC").toLowerCase();
}

/** TypeError for locks that are of no tree. */
export function targetOf({ root, directory }: RedoFiles, path: string): string {
  if (root === undefined) throw new TypeError(`The locks in ${directory} were opened without a tree, and change none.`);
  return `${root}/${path}`;
}

export function stuck(path: string, why: string, cause?: unknown): Error {
  const message = `${path}: a committed change cannot be completed now, because ${why}. Its paths stay locked until it is.`;
  return holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true }, cause);
}
