// The directory in which an examination makes its probes; it is removed afterwards.
import { isLink, removeDirectory, removeTree } from "../durable/publish/directory.ts";
import { holdfastError, isHoldfastError } from "../errors.ts";
import { randomName } from "../format/id.ts";
import { errnoOf, hasErrno } from "../ports/disk-error.ts";
import type { Disk } from "../ports/disk.ts";
import type { Ports } from "../ports/ports.ts";
import type { DoctorCheck } from "./report.ts";

/** Throws INVALID_PATH if it is missing or not a directory. */
export async function mustBeDirectory(disk: Disk, directory: string): Promise<void> {
  try {
    if ((await disk.stat(directory)).kind === "directory") return;
  } catch (error) {
    throw explainMissing(error, directory);
  }
  throw notADirectory(directory);
}

/** Explains to the caller why `directory`, which it named, was not found. */
export function explainMissing(error: unknown, directory: string): unknown {
  if (hasErrno(error, "ENOTDIR")) return notADirectory(directory, error);
  if (!hasErrno(error, "ENOENT")) return error;
  const message = `${directory} does not exist. Mount the share, create the directory, or correct the path.`;
  return holdfastError("INVALID_PATH", message, { path: directory }, error);
}

function notADirectory(directory: string, cause?: unknown): Error {
  const message = `${directory} is not a directory. Name the folder that is to be shared.`;
  return holdfastError("INVALID_PATH", message, { path: directory }, cause);
}

export interface ScratchOutcome<T> {
  readonly result: T;
  /** Set if it could not be removed. */
  readonly leftBehind?: DoctorCheck;
}

/** Throws NO_PERMISSION if nothing can be created in `directory`. Errors of `action` are thrown after the removal. */
export async function withScratch<T>(
  ports: Ports,
  directory: string,
  action: (scratch: string) => Promise<T>,
): Promise<ScratchOutcome<T>> {
  const scratch = `${directory}/.holdfast-doctor-${randomName(ports.random.bytes(16))}`;
  await makeScratch(ports.disk, directory, scratch);
  await removeForgotten(ports.disk, directory, scratch);
  let result: T;
  try {
    result = await action(scratch);
  } catch (error) {
    await removePatiently(ports, scratch);
    throw error;
  }
  if (await removePatiently(ports, scratch)) return { result };
  return { result, leftBehind: leftBehind(scratch) };
}

const scratchPattern = /^\.holdfast-doctor-[0-9a-hjkmnp-tv-z]{26}$/;
/** A scratch directory that is older than this was left by a killed run: no examination takes this long. */
const forgottenMs = 24 * 3_600_000;

/** Removes scratch directories of killed runs, by the stamps of the server. */
async function removeForgotten(disk: Disk, directory: string, scratch: string): Promise<void> {
  await despiteTrouble(async () => {
    const { mtimeMs: nowMs } = await disk.stat(scratch);
    for (const name of await disk.list(directory))
      if (scratchPattern.test(name)) await despiteTrouble(() => removeIfForgotten(disk, `${directory}/${name}`, nowMs));
  });
}

async function removeIfForgotten(disk: Disk, path: string, nowMs: number): Promise<void> {
  // No examination creates links, and a link says nothing about the age of its target.
  if (await isLink(disk, path)) return;
  const { kind, mtimeMs } = await disk.stat(path);
  if (kind === "directory" && nowMs - mtimeMs > forgottenMs) await removeTree(disk, path);
}

/** Ignores disk failures, because they do not concern this examination. */
async function despiteTrouble(action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
  }
}

async function makeScratch(disk: Disk, directory: string, scratch: string): Promise<void> {
  try {
    await disk.mkdir(scratch);
  } catch (error) {
    if (!hasErrno(error, "EACCES", "EPERM", "EROFS")) throw error;
    const why = hasErrno(error, "EROFS") ? "it is mounted read-only" : "this user may not write there";
    const message = `Nothing can be created in ${directory} (${errnoOf(error) ?? ""}): ${why}. All users that share a folder need to write to all of it.`;
    throw holdfastError("NO_PERMISSION", message, { path: directory }, error);
  }
}

const removalsMax = 5;
const removalPauseMs = 200;

/**
 * Returns true once it is gone. A scanner, or a client that keeps a removed file until its last close, can delay
 * that.
 */
export async function removePatiently(ports: Ports, path: string): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    try {
      if (await removeDirectory(ports.disk, path)) return true;
    } catch (error) {
      // A failing disk must not hide the earlier findings. The report names what is left behind.
      if (errnoOf(error) === undefined) throw error;
    }
    if (tries >= removalsMax) return false;
    await ports.clock.sleep(removalPauseMs);
  }
}

export function leftBehind(path: string): DoctorCheck {
  return {
    id: "clean-up",
    question: "Can what was made be removed again?",
    verdict: "limited",
    finding: `${path} could not be removed.`,
    meaning:
      "Something holds a file in it, or removing failed: Holdfast would have to leave such files to a later sweep.",
    remedy: "Remove it by hand.",
  };
}
