// One look at the name of a lock: whether something is there, what it says, and how to recognise it at the next look.
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { lockFileBytesMax, parseLockRecord, type LockRecord } from "./lock-file.ts";

export type LockForm = "file" | "directory";

export interface Taken {
  readonly kind: "taken";
  readonly form: LockForm;
  /** Equal for two looks if and only if nothing has changed in between. */
  readonly signature: string;
  /** Absent when there is none, or when it is torn or garbage. */
  readonly record?: LockRecord;
  /** Whose content this user may not read: nothing can be said about it. */
  readonly isHidden?: boolean;
  /** A directory without a record of ours in it: it may be a lock of another program, or no lock at all. */
  readonly isBare?: boolean;
  /** Each time it was opened, it was gone before it could be read: it changes hands on other machines. Nothing of it can be known, except that it is another's. */
  readonly isFleeting?: boolean;
}

export type Sight = { readonly kind: "free" } | Taken;

const free: Sight = { kind: "free" };
const triesMax = 3;

/** The record inside a lock of the directory form. */
export function recordPathOf(lockPath: string, form: LockForm): string {
  return form === "file" ? lockPath : `${lockPath}/owner`;
}

/**
 * What is there now. By reading and not by `stat`, whose answer may be an old one on a share. Never reads more than a lock file can have, whatever lies there.
 */
export async function look(disk: Disk, path: string): Promise<Sight> {
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

async function lookOnce(disk: Disk, path: string): Promise<Sight> {
  try {
    return takenBy("file", await disk.readFile(path, lockFileBytesMax));
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return free;
    if (hasErrno(error, "EISDIR")) return await lookInside(disk, path);
    return await describeUnread(disk, path, "file", error);
  }
}

/** What a lock looks like that has exactly these bytes. */
export function takenBy(form: LockForm, bytes: Uint8Array): Taken {
  const record = parseLockRecord(Buffer.from(bytes).toString("utf8"));
  // The bytes themselves and not the text: two kinds of garbage can decode to one text.
  const signature = `${form}:${Buffer.from(bytes).toString("latin1")}`;
  return record === undefined ? { kind: "taken", form, signature } : { kind: "taken", form, signature, record };
}

/** Nothing has changed between these two looks. */
export function isSame(before: Taken, now: Sight): boolean {
  return now.kind === "taken" && now.signature === before.signature && !now.isFleeting;
}

async function lookInside(disk: Disk, path: string): Promise<Sight> {
  try {
    return takenBy("directory", await disk.readFile(recordPathOf(path, "directory"), lockFileBytesMax));
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) {
      const sight = await describeByStat(disk, path, "directory");
      return sight.kind === "free" ? sight : { ...sight, isBare: true };
    }
    return await describeUnread(disk, path, "directory", error);
  }
}

async function describeUnread(disk: Disk, path: string, form: LockForm, error: unknown): Promise<Sight> {
  if (!hasErrno(error, "EFBIG", "EACCES", "EPERM", "EISDIR")) throw error;
  const sight = await describeByStat(disk, path, form);
  return sight.kind === "free" || !hasErrno(error, "EACCES", "EPERM") ? sight : { ...sight, isHidden: true };
}

/** For what has no content that could be compared. */
async function describeByStat(disk: Disk, path: string, form: LockForm): Promise<Sight> {
  try {
    const { identity, size, mtimeMs } = await disk.stat(path);
    return { kind: "taken", form, signature: `${form}?${identity}:${size}:${mtimeMs}` };
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return free;
    throw error;
  }
}
