// Where a lock file really lies: which paths are refused, and what a symbolic link leads to.
import { posix } from "node:path";
import { parentOf } from "../../durable/publish/directory.ts";
import { holdfastError } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk, FileStat } from "../../ports/disk.ts";
import type { LockForm } from "./observe.ts";

// What is made beside the lock has a longer name: `.guard`, or `.` and 26 digits and `.tmp`.
const nameBytesMax = 255 - 32;
const linksMax = 40;

/**
 * Refuses, before anything is touched, a path that is empty, holds a NUL, or has a `..` in it: what comes from a user or a configuration must not lead out of
 * the directory that the program has in mind. INVALID_PATH.
 */
export function checkLockPath(path: string): void {
  if (typeof path !== "string") throw new TypeError("The path of a semaphore must be a string.");
  if (path.trim() === "") throw invalid(path, "it is empty");
  if (path.includes("\0")) throw invalid(path, "it contains a NUL character");
  if (path.split(/[\\/]/).includes(".."))
    throw invalid(path, "it contains `..`; if that is meant, resolve it to an absolute path first");
}

/** Follows symbolic links, also one whose target is not there: that is what a free lock looks like behind a link. INVALID_PATH. */
export async function resolveLockPath(disk: Disk, path: string): Promise<string> {
  let at = path;
  for (let links = 0; links < linksMax; links++) {
    try {
      const real = await disk.realPath(at);
      return checkName(real, (await disk.findStat(real))?.kind);
    } catch (error) {
      if (!hasErrno(error, "ENOENT")) throw explainPath(error, path);
    }
    // Either there is nothing, or a link that leads to nothing.
    const directory = await realParent(disk, at, path);
    const here = `${directory === "/" ? "" : directory}/${posix.basename(at)}`;
    const target = await findLinkTarget(disk, here);
    if (target === undefined) return checkName(here, undefined);
    at = posix.resolve(directory, target);
  }
  throw invalid(path, "its symbolic links lead in a circle");
}

/** What a failure with the name itself means to a user: the directory went away, or never was. Other errors come back unchanged. */
export function explainPath(error: unknown, path: string): unknown {
  if (hasErrno(error, "ENOENT"))
    return invalid(path, "its directory is not there; make it, or mount what it lies on", error);
  if (hasErrno(error, "ENOTDIR")) return invalid(path, "something on the way to it is not a directory", error);
  if (hasErrno(error, "ELOOP")) return invalid(path, "its symbolic links lead in a circle", error);
  return error;
}

async function realParent(disk: Disk, at: string, path: string): Promise<string> {
  try {
    return await disk.realPath(parentOf(at));
  } catch (error) {
    throw explainPath(error, path);
  }
}

async function findLinkTarget(disk: Disk, path: string): Promise<string | undefined> {
  try {
    return await disk.readLink(path);
  } catch (error) {
    // EINVAL: by now a lock is there.
    if (hasErrno(error, "ENOENT", "EINVAL")) return undefined;
    throw error;
  }
}

function checkName(path: string, kind: FileStat["kind"] | undefined): string {
  // To open a pipe would wait for somebody who writes into it.
  if (kind === "other") throw invalid(path, "it is neither a file nor a directory");
  const name = posix.basename(path);
  if (name === "") throw invalid(path, "it has no name");
  if (Buffer.byteLength(name) > nameBytesMax) throw invalid(path, `its name has over ${nameBytesMax} bytes`);
  return path;
}

/** For what has contents that are neither a record nor the beginning of one: it is somebody's data. */
export function notALock(path: string, form: LockForm, cause?: unknown): Error {
  const what = form === "file" ? "file with contents that are no lock" : "directory with files in it that are no lock";
  const message = `${path} is a ${what}. Nothing was removed; choose another path, or move it away.`;
  return holdfastError("INVALID_PATH", message, { path }, cause);
}

function invalid(path: string, why: string, cause?: unknown): Error {
  const shown = path.length <= 200 ? path : `${path.slice(0, 200)}…`;
  return holdfastError("INVALID_PATH", `${JSON.stringify(shown)} cannot be a lock: ${why}.`, { path }, cause);
}
