// Turns what a user gives as the place of a store into the one absolute path that the ports work
// with.
import { realpathSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { holdfastError } from "../../errors.ts";
import { findErrno } from "./disk/errno.ts";

/**
 * A directory path (also `\\\\server\\share\\…` and drive letters) or a `file:` URL. INVALID_PATH.
 */
export function directoryOf(location: string | URL): string {
  if (typeof location !== "string" && !((location as unknown) instanceof URL))
    throw new TypeError(`The location must be a path or a file: URL, not ${inspect(location, { depth: 0 })}.`);
  const path = location instanceof URL || location.startsWith("file:") ? pathOfUrl(location) : location;
  if (path === "") throw invalid(path, "it is empty");
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(path)) throw invalid(path, "only file: URLs name a folder");
  if (path.startsWith("memory:"))
    throw invalid(path, 'it names no folder; "memory:" alone is known to `openStore` and `openEvents`');
  if (path.includes("\0")) throw invalid(path, "it contains a NUL character");
  const absolute = absoluteOf(path);
  return process.platform === "win32" ? absolute.replaceAll("\\", "/") : absolute;
}

/**
 * As the system walks it: `..` is the parent of what a symbolic link before it leads to, not the
 * name before it crossed out. Otherwise Holdfast would work beside the folder that other programs
 * mean.
 */
function absoluteOf(path: string): string {
  // Windows itself crosses out the name.
  if (process.platform === "win32" || !path.split("/").includes("..")) return resolve(path);
  let at = isAbsolute(path) ? "/" : process.cwd();
  for (const name of path.split("/")) at = name === ".." ? dirname(followed(at, path)) : join(at, name);
  return resolve(at);
}

function followed(part: string, path: string): string {
  try {
    return realpathSync.native(part);
  } catch (cause) {
    const errno = findErrno(cause);
    // Nothing is there, so no link can lead elsewhere.
    if (errno === "ENOENT") return part;
    throw invalid(path, `${part} cannot be followed (${errno ?? "unknown error"}), and \`..\` stands behind it`, cause);
  }
}

function pathOfUrl(location: string | URL): string {
  try {
    return fileURLToPath(location);
  } catch (cause) {
    throw invalid(String(location), "it is not a file: URL of this machine", cause);
  }
}

function invalid(path: string, why: string, cause?: unknown): Error {
  return holdfastError("INVALID_PATH", `The location ${JSON.stringify(path)} cannot be used: ${why}.`, { path }, cause);
}
