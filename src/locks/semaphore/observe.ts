// Observation: what lies under the name of a lock at one moment, and how to recognise it again.
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk, FileStat } from "../../ports/disk.ts";
import { contentsOf, lockFileBytesMax, parseLockRecord, type Contents, type LockRecord } from "./lock-file.ts";

export type LockForm = "file" | "directory";

export interface Taken {
  readonly kind: "taken";
  readonly form: LockForm;
  /**
   * Equal for two observations if and only if nothing has changed in between. The bytes suffice
   * where they hold a token. Elsewhere two locks may have equal bytes (two empty files), so the
   * signature includes the stamps of the file.
   */
  readonly signature: string;
  /** Absent when no record can be read. */
  readonly record?: LockRecord;
  /** What the file may be if it has no record, as far as that is known. */
  readonly contents?: Contents;
  /** This user may not read it, so nothing is known about it. */
  readonly isHidden?: boolean;
  /** A directory without a record: the lock of another program, or not a lock. */
  readonly isBare?: boolean;
  /**
   * The file was replaced during each attempt to read it: it changes hands on other machines.
   * Nothing is known of it, except that it belongs to another process.
   */
  readonly changedWhileReading?: boolean;
}

export type Observation = { readonly kind: "free" } | Taken;

const free: Observation = { kind: "free" };
const triesMax = 3;

/** The record inside a lock of the directory form. */
export function recordPathOf(lockPath: string, form: LockForm): string {
  return form === "file" ? lockPath : `${lockPath}/owner`;
}

/**
 * What is there now. Reads the file instead of calling `stat`, whose answer may be old on a share.
 * Never reads more than a lock file can have.
 */
export async function observe(disk: Disk, path: string): Promise<Observation> {
  for (let tries = 1; ; tries++) {
    try {
      return await lookOnce(disk, path);
    } catch (error) {
      // The file that was opened is gone. That does not prove that the name is free, so look again.
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

async function lookAtRecord(disk: Disk, path: string, form: LockForm): Promise<Taken> {
  const recordPath = recordPathOf(path, form);
  const taken = takenBy(form, await disk.readFile(recordPath, lockFileBytesMax));
  if (taken.record?.token !== undefined || taken.contents === "data") return taken;
  return { ...taken, signature: `${taken.signature}@${stampOf(await disk.stat(recordPath))}` };
}

/** The observation of a lock that has exactly these bytes. */
export function takenBy(form: LockForm, bytes: Uint8Array): Taken {
  const text = Buffer.from(bytes).toString("utf8");
  const record = parseLockRecord(text);
  // The bytes and not the text: different invalid bytes decode to one text.
  const signature = `${form}:${Buffer.from(bytes).toString("latin1")}`;
  const taken = { kind: "taken", form, signature } as const;
  return record === undefined ? { ...taken, contents: contentsOf(text) } : { ...taken, record };
}

/** True when nothing has changed between the two observations. */
export function isSame(before: Taken, now: Observation): boolean {
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

/** A lock of the directory form contains its record and nothing else, at every moment. */
async function hasOthersInside(disk: Disk, path: string): Promise<boolean> {
  try {
    return (await disk.list(path)).some((name) => `${path}/${name}` !== recordPathOf(path, "directory"));
  } catch (error) {
    // It changed meanwhile or cannot be listed: no evidence against a lock.
    if (hasErrno(error, "ENOENT", "ENOTDIR", "ESTALE", "EACCES", "EPERM")) return false;
    throw error;
  }
}

async function describeUnread(disk: Disk, path: string, form: LockForm, error: unknown): Promise<Observation> {
  if (!hasErrno(error, "EFBIG", "EACCES", "EPERM", "EISDIR")) throw error;
  const observation = await describeByStat(disk, path, form);
  if (observation.kind === "free") return observation;
  // A file larger than any record, or a directory in place of the record, is not a lock of ours.
  return hasErrno(error, "EACCES", "EPERM") ? { ...observation, isHidden: true } : { ...observation, contents: "data" };
}

/** For a file or directory without content to compare. */
async function describeByStat(disk: Disk, path: string, form: LockForm): Promise<Observation> {
  const stat = await disk.findStat(path);
  return stat === undefined ? free : { kind: "taken", form, signature: `${form}?${stampOf(stat)}` };
}

function stampOf({ identity, size, mtimeMs }: FileStat): string {
  return `${identity}:${size}:${mtimeMs}`;
}
