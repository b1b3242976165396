// Turns the location that a user passes into the one absolute path that the ports use.
import { realpathSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { holdfastError } from "../../errors.ts";
import { findErrno } from "./disk/errno.ts";

/** True for `memory:`, the location of a new world in memory. */
export function isMemory(location: string | URL): boolean {
  return (location instanceof URL ? location.href : location) === "memory:";
}

/** True for a location in PostgreSQL. */
export function isPostgres(location: string | URL): boolean {
  return /^postgres(ql)?:/i.test(location instanceof URL ? location.href : location);
}

/**
 * Returns the absolute path of a directory path (also `\\\\server\\share\\…` and drive letters) or
 * a `file:` URL. Throws INVALID_PATH.
 */
export function directoryOf(location: string | URL): string {
  if (typeof location !== "string" && !((location as unknown) instanceof URL))
    throw new TypeError(`The location must be a path or a file: URL, not ${inspect(location, { depth: 0 })}.`);
  const path = location instanceof URL || location.startsWith("file:") ? pathOfUrl(location) : location;
  if (path === "") throw invalid(path, "it is empty");
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(path)) throw invalid(path, "only file: URLs name a folder");
  if (path.startsWith("memory:"))
    throw invalid(path, 'it does not name a folder. "memory:" alone is a location, and only for functions that open');
  if (path.includes("\0")) throw invalid(path, "it contains a NUL character");
  const absolute = absoluteOf(path);
  return process.platform === "win32" ? absolute.replaceAll("\\", "/") : absolute;
}

/**
 * Resolves the path as the system does: `..` is the parent of the directory that a preceding
 * symbolic link leads to; it does not just cancel the preceding name. Otherwise Holdfast would work
 * beside the folder that other programs use.
 */
function absoluteOf(path: string): string {
  // Windows itself cancels the name.
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
    // Nothing exists there, so no link can lead elsewhere.
    if (errno === "ENOENT") return part;
    throw invalid(path, `${part} cannot be resolved (${errno ?? "unknown error"}), and \`..\` follows it`, cause);
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
