// The path of a lock: which paths are refused, where symbolic links lead, and the file names beside it.
import { posix } from "node:path";
import { parentOf } from "../../durable/publish/directory.ts";
import { holdfastError } from "../../errors.ts";
import { findPortableFault } from "../../format/name.ts";
import { randomName } from "../../format/id.ts";
import { diskError, hasErrno } from "../../ports/disk-error.ts";
import type { Disk, FileStat } from "../../ports/disk.ts";
import type { Random } from "../../ports/random.ts";
import { followLinks } from "../naming/follow-path.ts";
import type { LockFileForm } from "./observe.ts";

// Leaves room for longer names beside the lock: `.guard`, or `.`, 26 digits and `.tmp`.
const nameBytesMax = 255 - 32;

/**
 * Refuses an empty path, one with a NUL, and one with `..`, before anything is touched: a path from a user or a
 * configuration must not lead out of the intended directory. Throws INVALID_PATH.
 */
export function checkLockPath(path: string): void {
  if (typeof path !== "string") throw new TypeError("The path of a semaphore must be a string.");
  if (path.trim() === "") throw invalid(path, "it is empty");
  if (path.includes("\0")) throw invalid(path, "it contains a NUL character");
  if (path.split(/[\\/]/).includes(".."))
    throw invalid(path, "it contains `..`; if that is meant, resolve it to an absolute path first");
}

/**
 * Returns the file to which `path` leads. A symbolic link may be dangling: then the lock is free. Its directory must
 * exist. Throws INVALID_PATH.
 */
export async function resolveLockPath(disk: Disk, path: string): Promise<string> {
  try {
    const { path: real, existing } = await followLinks(disk, path);
    if (real === existing) return checkName(disk, real, (await disk.findStat(real))?.kind);
    if (parentOf(real) !== existing) throw diskError("ENOENT", "open", parentOf(real));
    return checkName(disk, real, undefined);
  } catch (error) {
    throw explainPath(error, path);
  }
}

/**
 * Returns a name with 128 random bits: no process can guess it, and two containers with equal pids do not collide.
 */
export function tempPathOf(lockPath: string, random: Random): string {
  return `${lockPath}.${randomName(random.bytes(16))}.tmp`;
}

/**
 * Explains a disk error about the name: the directory was removed, or never existed. Other errors are returned
 * unchanged.
 */
export function explainPath(error: unknown, path: string): unknown {
  if (hasErrno(error, "ENOENT"))
    return invalid(path, "its directory is not there; make it, or mount what it lies on", error);
  if (hasErrno(error, "ENOTDIR")) return invalid(path, "something on the way to it is not a directory", error);
  if (hasErrno(error, "ELOOP")) return invalid(path, "its symbolic links lead in a circle", error);
  return error;
}

function checkName(disk: Disk, path: string, kind: FileStat["kind"] | undefined): string {
  // Never open it: opening a pipe would wait for a writer.
  if (kind === "other") throw invalid(path, "it is neither a file nor a directory");
  const name = posix.basename(path);
  if (name === "") throw invalid(path, "it has no name");
  const fault = disk.volume.hasWindowsNames ? findPortableFault(name) : undefined;
  if (fault !== undefined) throw invalid(path, fault);
  if (Buffer.byteLength(name) > nameBytesMax) throw invalid(path, `its name has over ${nameBytesMax} bytes`);
  return path;
}

/** Returns the error for contents that are neither a record nor the beginning of one. */
export function notALock(path: string, form: LockFileForm, cause?: unknown): Error {
  const what =
    form === "file" ? "a lock file: its contents are not a record" : "a lock: it is a directory with files in it";
  const message = `${path} is not ${what}. Nothing was removed; choose another path, or move it away.`;
  return holdfastError("INVALID_PATH", message, { path }, cause);
}

function invalid(path: string, why: string, cause?: unknown): Error {
  const shown = path.length <= 200 ? path : `${path.slice(0, 200)}…`;
  return holdfastError("INVALID_PATH", `${JSON.stringify(shown)} cannot be a lock: ${why}.`, { path }, cause);
}
