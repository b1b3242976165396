// Names and content of lock files of the `.ovlock` kind, as foreign programs write and read them.
import { createHash } from "node:crypto";
import type { LockMode } from "../../common.ts";

const directoryLock = ".path.ovlock";
const sidecarPrefix = ".exact.ovlock.";
const safeLengthMax = 80;
const hashLength = 16;
/**
 * Nanoseconds since 1970 have this many digits until the year 2286. A token never changes its length, so it can be
 * overwritten in place.
 */
const timeDigits = 19;
const nsPerMs = 1_000_000n;

export interface LockFileToken {
  /** An opaque text that identifies the holder. */
  readonly handle: string;
  /** When it was last written or refreshed, by its writer's clock. */
  readonly timeMs: number;
  readonly mode: LockMode;
}

/** Returns the name of a lock file inside `path`, which is used for an existing directory. */
export function directoryLockOf(path: string): string {
  return inside(path, directoryLock);
}

/**
 * Returns the name of a lock file beside `path`, which is used for a file, or if nothing exists at `path`. A root has
 * none.
 */
export function sidecarOf(path: string): string {
  const parent = findParent(path);
  if (parent === undefined) return directoryLockOf(path);
  const name = path.slice(path.lastIndexOf("/") + 1);
  const safe = name.replace(/[^A-Za-z0-9._-]+/g, "_").replace(/^[._]+|[._]+$/g, "") || "path";
  const hash = createHash("sha1").update(nativeOf(path), "utf8").digest("hex").slice(0, hashLength);
  return inside(parent, `${sidecarPrefix}${safe.slice(0, safeLengthMax)}.${hash}`);
}

/**
 * Returns both names that a lock on `path` may have: a directory may have been created or removed since the lock was
 * acquired.
 */
export function lockFilesOf(path: string): string[] {
  return [...new Set([directoryLockOf(path), sidecarOf(path)])];
}

export function isLockFileName(name: string): boolean {
  return name === directoryLock || name.startsWith(sidecarPrefix);
}

/** Returns the directories above an absolute path, nearest first. */
export function ancestorsOf(path: string): string[] {
  const ancestors: string[] = [];
  for (let above = findParent(path); above !== undefined; above = findParent(above)) ancestors.push(above);
  return ancestors;
}

export function encodeToken({ handle, timeMs, mode }: LockFileToken): string {
  const timeNs = BigInt(Math.max(0, Math.floor(timeMs))) * nsPerMs;
  return `${handle}:${String(timeNs).padStart(timeDigits, "0")}:${mode === "tree" ? "T" : "E"}`;
}

/**
 * Returns undefined for a text that is not a token. A token without a type is from an old version, whose locks are
 * stale: its time is 0.
 */
export function parseToken(text: string): LockFileToken | undefined {
  const typed = /^(.+):(\d{1,39}):([ETPS])$/.exec(text.trim());
  if (typed !== null) {
    const [, handle = "", timeNs = "", type] = typed;
    return { handle, timeMs: Number(BigInt(timeNs) / nsPerMs), mode: type === "E" ? "exact" : "tree" };
  }
  const untyped = /^(.+):\d{19}$/.exec(text.trim());
  return untyped === null ? undefined : { handle: untyped[1] ?? "", timeMs: 0, mode: "exact" };
}

/** Programs on Windows hash a path as Windows writes it. Only there it begins with a drive or two slashes. */
function nativeOf(path: string): string {
  return /^([a-z]:\/|\/\/)/i.test(path) ? path.replaceAll("/", "\\") : path;
}

/** Returns undefined for the root of a file system or drive. */
function findParent(path: string): string | undefined {
  const slash = path.lastIndexOf("/");
  if (slash < 0 || path === "/") return undefined;
  return slash === 0 ? "/" : path.slice(0, slash);
}

function inside(directory: string, name: string): string {
  return directory === "/" ? `/${name}` : `${directory}/${name}`;
}
