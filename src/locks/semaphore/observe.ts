// Observation: the state of a lock's name at one moment, and how to recognize it again.
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk, FileStat } from "../../ports/disk.ts";
import {
  contentsOf,
  lockFileBytesMax,
  parseLockRecord,
  type UnreadableContents,
  type LockRecord,
} from "./lock-file.ts";

export type LockFileForm = "file" | "directory";

export interface TakenLock {
  readonly kind: "taken";
  readonly form: LockFileForm;
  /**
   * Equal for two observations if and only if nothing has changed in between. Bytes with a token suffice. Without a
   * token, two locks may have equal bytes (two empty files), so the signature includes the stamps of the file.
   */
  readonly signature: string;
  /** Absent if no record can be read. */
  readonly record?: LockRecord;
  /** The class of a file without a record, if known. */
  readonly contents?: UnreadableContents;
  /** True if this user may not read it. Nothing is known about it then. */
  readonly isHidden?: boolean;
  /** True for a directory without a record: the lock of another program, or not a lock. */
  readonly isBare?: boolean;
  /**
   * True if the file was replaced during each attempt to read it, because other machines take and release the lock.
   * It is only known that another process has it.
   */
  readonly changedWhileReading?: boolean;
}

export type Observation = { readonly kind: "free" } | TakenLock;

const free: Observation = { kind: "free" };
const triesMax = 3;

/** The path of the record inside a lock of the directory form. */
export function recordPathOf(lockPath: string, form: LockFileForm): string {
  return form === "file" ? lockPath : `${lockPath}/owner`;
}

/**
 * Observes the lock now. Reads the file instead of calling `stat`, whose answer may be stale on a share. Never reads
 * more than a lock file can have.
 */
export async function observe(disk: Disk, path: string): Promise<Observation> {
  for (let tries = 1; ; tries++) {
    try {
      return await lookOnce(disk, path);
    } catch (error) {
      // The file that was opened is gone. That does not prove that the name is free, so observe again.
      if (!hasErrno(error, "ESTALE")) throw error;
      if (tries >= triesMax) return { kind: "taken", form: "file", signature: "changing", changedWhileReading: true };
    }
  }
}

async function lookOnce(disk: Disk, path: string): Promise<Observation> {
  try {
    return await lookAtRecord(disk, path, "file");
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return free;
    if (hasErrno(error, "EISDIR")) return await lookInside(disk, path);
    return await describeUnread(disk, path, "file", error);
  }
}

async function lookAtRecord(disk: Disk, path: string, form: LockFileForm): Promise<TakenLock> {
  const recordPath = recordPathOf(path, form);
  const taken = observationOf(form, await disk.readFile(recordPath, lockFileBytesMax));
  if (taken.record?.token !== undefined || taken.contents === "data") return taken;
  return { ...taken, signature: `${taken.signature}@${stampOf(await disk.stat(recordPath))}` };
}

/** Returns the observation that a lock with exactly these bytes will have. */
export function observationOf(form: LockFileForm, bytes: Uint8Array): TakenLock {
  const text = Buffer.from(bytes).toString("utf8");
  const record = parseLockRecord(text);
  // Use the bytes, not the text: different invalid bytes decode to the same text.
  const signature = `${form}:${Buffer.from(bytes).toString("latin1")}`;
  const taken = { kind: "taken", form, signature } as const;
  return record === undefined ? { ...taken, contents: contentsOf(text) } : { ...taken, record };
}

/** True if nothing has changed between the two observations. */
export function isSame(before: TakenLock, now: Observation): boolean {
  return now.kind === "taken" && now.signature === before.signature && !now.changedWhileReading;
}

async function lookInside(disk: Disk, path: string): Promise<Observation> {
  const observation = await lookAtRecordInside(disk, path);
  if (observation.kind === "free" || observation.record !== undefined) return observation;
  return (await hasOthersInside(disk, path)) ? { ...observation, contents: "data" } : observation;
}

async function lookAtRecordInside(disk: Disk, path: string): Promise<Observation> {
  try {
    return await lookAtRecord(disk, path, "directory");
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) {
      const observation = await describeByStat(disk, path, "directory");
      return observation.kind === "free" ? observation : { ...observation, isBare: true };
    }
    return await describeUnread(disk, path, "directory", error);
  }
}

/** True if a lock of the directory form contains anything but its record. Such a directory is not a lock. */
async function hasOthersInside(disk: Disk, path: string): Promise<boolean> {
  try {
    return (await disk.list(path)).some((name) => `${path}/${name}` !== recordPathOf(path, "directory"));
  } catch (error) {
    // It changed meanwhile or cannot be listed, so nothing shows that it is not a lock.
    if (hasErrno(error, "ENOENT", "ENOTDIR", "ESTALE", "EACCES", "EPERM")) return false;
    throw error;
  }
}

async function describeUnread(disk: Disk, path: string, form: LockFileForm, error: unknown): Promise<Observation> {
  if (!hasErrno(error, "EFBIG", "EACCES", "EPERM", "EISDIR")) throw error;
  const observation = await describeByStat(disk, path, form);
  if (observation.kind === "free") return observation;
  // A file that is larger than any record is not ours, nor is a directory where the record should be.
  return hasErrno(error, "EACCES", "EPERM") ? { ...observation, isHidden: true } : { ...observation, contents: "data" };
}

/** Describes a file or directory that has no content to compare. */
async function describeByStat(disk: Disk, path: string, form: LockFileForm): Promise<Observation> {
  const stat = await disk.findStat(path);
  return stat === undefined ? free : { kind: "taken", form, signature: `${form}?${stampOf(stat)}` };
}

function stampOf({ identity, size, mtimeMs }: FileStat): string {
  return `${identity}:${size}:${mtimeMs}`;
}
