// The names and the text of lock files of the `.ovlock` kind, as the foreign programs that know them make and read them.
import { createHash } from "node:crypto";
import type { LockMode } from "../../common.ts";

const directoryLock = ".path.ovlock";
const sidecarPrefix = ".exact.ovlock.";
const safeLengthMax = 80;
const hashLength = 16;
/** Of nanoseconds since 1970, until the year 2286: a token never changes its length, so it can be written over itself. */
const timeDigits = 19;
const nsPerMs = 1_000_000n;

export interface LockFileToken {
  /** Whose it is: opaque text. */
  readonly handle: string;
  /** When it was written or refreshed last, by the clock of whoever wrote it. */
  readonly timeMs: number;
  readonly mode: LockMode;
}

/** In the path itself: every lock on an existing directory. */
export function directoryLockOf(path: string): string {
  return inside(path, directoryLock);
}

/** Beside the path: a lock on a file, or on what does not exist. A root has nothing beside it. */
export function sidecarOf(path: string): string {
  const parent = findParent(path);
  if (parent === undefined) return directoryLockOf(path);
  const name = path.slice(path.lastIndexOf("/") + 1);
  const safe = name.replace(/[^A-Za-z0-9._-]+/g, "_").replace(/^[._]+|[._]+$/g, "") || "path";
  const hash = createHash("sha1").update(path, "utf8").digest("hex").slice(0, hashLength);
  return inside(parent, `${sidecarPrefix}${safe.slice(0, safeLengthMax)}.${hash}`);
}

/** Wherever a lock on `path` may be: what was there when it was made may be there no more. */
export function lockFilesOf(path: string): string[] {
  return [...new Set([directoryLockOf(path), sidecarOf(path)])];
}

export function isLockFileName(name: string): boolean {
  return name === directoryLock || name.startsWith(sidecarPrefix);
}

/** The directories above an absolute path, nearest first. */
export function ancestorsOf(path: string): string[] {
  const ancestors: string[] = [];
  for (let above = findParent(path); above !== undefined; above = findParent(above)) ancestors.push(above);
  return ancestors;
}

export function encodeToken({ handle, timeMs, mode }: LockFileToken): string {
  const timeNs = BigInt(Math.max(0, Math.floor(timeMs))) * nsPerMs;
  return `${handle}:${String(timeNs).padStart(timeDigits, "0")}:${mode === "tree" ? "T" : "E"}`;
}

/** Undefined for what is none. A time without a type is of a program so old that what it left is stale: its time is 0. */
export function parseToken(text: string): LockFileToken | undefined {
  const typed = /^(.+):(\d{1,39}):([ETPS])$/.exec(text.trim());
  if (typed !== null) {
    const [, handle = "", timeNs = "", type] = typed;
    return { handle, timeMs: Number(BigInt(timeNs) / nsPerMs), mode: type === "E" ? "exact" : "tree" };
  }
  const untyped = /^(.+):\d{19}$/.exec(text.trim());
  return untyped === null ? undefined : { handle: untyped[1] ?? "", timeMs: 0, mode: "exact" };
}

/** Undefined for the root of a file system, or of a drive. */
function findParent(path: string): string | undefined {
  const slash = path.lastIndexOf("/");
  if (slash < 0 || path === "/") return undefined;
  return slash === 0 ? "/" : path.slice(0, slash);
}

function inside(directory: string, name: string): string {
  return directory === "/" ? `/${name}` : `${directory}/${name}`;
}
