// One look at the name of a lock: whether something is there, what it says, and how to recognise it at the next look.
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk, FileStat } from "../../ports/disk.ts";
import { contentsOf, type Contents } from "./contents.ts";
import { lockFileBytesMax, parseLockRecord, type LockRecord } from "./lock-file.ts";

export type LockForm = "file" | "directory";

export interface Taken {
  readonly kind: "taken";
  readonly form: LockForm;
  /**
   * Equal for two looks if and only if nothing has changed in between. The bytes are enough where a token is among them;
   * elsewhere two locks may have the same ones, as two that were just created and are empty, and so the stamps of the
   * file are part of it.
   */
  readonly signature: string;
  /** Absent when there is none that can be read. */
  readonly record?: LockRecord;
  /** What is there instead of a record, if that is known. */
  readonly contents?: Contents;
  /** Whose content this user may not read: nothing can be said about it. */
  readonly isHidden?: boolean;
  /** A directory without a record of ours in it: it may be a lock of another program, or no lock at all. */
  readonly isBare?: boolean;
  /** Each time it was opened, it was gone before it could be read: it changes hands on other machines. Nothing of it can be known, except that it is another's. */
  readonly isFleeting?: boolean;
}

export type Observation = { readonly kind: "free" } | Taken;

const free: Observation = { kind: "free" };
const triesMax = 3;

/** The record inside a lock of the directory form. */
export function recordPathOf(lockPath: string, form: LockForm): string {
  return form === "file" ? lockPath : `${lockPath}/owner`;
}

/**
 * What is there now. By reading and not by `stat`, whose answer may be an old one on a share. Never reads more than a lock file can have, whatever lies there.
 */
export async function observe(disk: Disk, path: string): Promise<Observation> {
  for (let tries = 1; ; tries++) {
    try {
      return await lookOnce(disk, path);
    } catch (error) {
      // What this machine has opened is gone, and what is there now is found by looking anew. It is no proof that the name is free.
      if (!hasErrno(error, "ESTALE")) throw error;
      if (tries >= triesMax) return { kind: "taken", form: "file", signature: "fleeting", isFleeting: true };
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

/** What a lock of ours looks like that has exactly these bytes. */
export function takenBy(form: LockForm, bytes: Uint8Array): Taken {
  const text = Buffer.from(bytes).toString("utf8");
  const record = parseLockRecord(text);
  // The bytes themselves and not the text: two kinds of garbage can decode to one text.
  const signature = `${form}:${Buffer.from(bytes).toString("latin1")}`;
  const taken = { kind: "taken", form, signature } as const;
  return record === undefined ? { ...taken, contents: contentsOf(text) } : { ...taken, record };
}

/** Nothing has changed between these two looks. */
export function isSame(before: Taken, now: Observation): boolean {
  return now.kind === "taken" && now.signature === before.signature && !now.isFleeting;
}

async function lookInside(disk: Disk, path: string): Promise<Observation> {
  const sight = await lookAtRecordInside(disk, path);
  if (sight.kind === "free" || sight.record !== undefined) return sight;
  return (await hasOthersInside(disk, path)) ? { ...sight, contents: "data" } : sight;
}

async function lookAtRecordInside(disk: Disk, path: string): Promise<Observation> {
  try {
    return await lookAtRecord(disk, path, "directory");
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) {
      const sight = await describeByStat(disk, path, "directory");
      return sight.kind === "free" ? sight : { ...sight, isBare: true };
    }
    return await describeUnread(disk, path, "directory", error);
  }
}

/** A lock of the directory form has its record inside and nothing else, at every moment of its life. */
async function hasOthersInside(disk: Disk, path: string): Promise<boolean> {
  try {
    return (await disk.list(path)).some((name) => `${path}/${name}` !== recordPathOf(path, "directory"));
  } catch (error) {
    // It has changed since, or may not be listed: then nothing speaks against a lock.
    if (hasErrno(error, "ENOENT", "ENOTDIR", "ESTALE", "EACCES", "EPERM")) return false;
    throw error;
  }
}

async function describeUnread(disk: Disk, path: string, form: LockForm, error: unknown): Promise<Observation> {
  if (!hasErrno(error, "EFBIG", "EACCES", "EPERM", "EISDIR")) throw error;
  const sight = await describeByStat(disk, path, form);
  if (sight.kind === "free") return sight;
  // What is larger than any record, or has a directory in its place, is another's.
  return hasErrno(error, "EACCES", "EPERM") ? { ...sight, isHidden: true } : { ...sight, contents: "data" };
}

/** For what has no content that could be compared. */
async function describeByStat(disk: Disk, path: string, form: LockForm): Promise<Observation> {
  const stat = await disk.findStat(path);
  return stat === undefined ? free : { kind: "taken", form, signature: `${form}?${stampOf(stat)}` };
}

function stampOf({ identity, size, mtimeMs }: FileStat): string {
  return `${identity}:${size}:${mtimeMs}`;
}
