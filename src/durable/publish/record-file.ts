// One small record under a fixed name: the first process decides it, and all later ones read it.
import type { OpenOptions } from "../../common.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { decodeRecord, encodeRecord, isTorn, recordBytesMax, type RecordKind } from "../../format/record.ts";
import { errnoOf, hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { parentOf, syncNames } from "./directory.ts";
import { putIfAbsent } from "./publish.ts";
import type { Staging } from "./staging.ts";

/** Throws CORRUPT, NEWER_FORMAT, and IO_ERROR (ENOENT) if there is no record. */
export async function getRecord<T>(disk: Disk, kind: RecordKind<T>, path: string): Promise<T> {
  return decodeRecord(kind, await readWhole(disk, kind, path), path);
}

async function readWhole(disk: Disk, kind: RecordKind<unknown>, path: string): Promise<Uint8Array> {
  try {
    return await disk.readFile(path, recordBytesMax);
  } catch (error) {
    if (!hasErrno(error, ...notRecords) || (kind.mayBeDirectory && hasErrno(error, "EISDIR"))) throw error;
    const why = hasErrno(error, "EISDIR") ? "it is a directory" : `it has over ${recordBytesMax} bytes`;
    const message = `${path} is not a valid ${kind.kind} record: ${why}. Restore it from a backup, or move it away.`;
    throw holdfastError("CORRUPT", message, { path }, error);
  }
}

const notRecords = ["EFBIG", "EISDIR"];

/**
 * True if the record was cut off, like a file that was not synced before a power cut. `error` comes
 * from `getRecord`.
 */
export async function isTornRecord(disk: Disk, path: string, error: unknown): Promise<boolean> {
  // With a cause that is a disk failure, there are no bytes to judge.
  if (!isHoldfastError(error, "CORRUPT") || errnoOf(error.cause) !== undefined) return false;
  return isTorn(await disk.readFile(path, recordBytesMax));
}

export async function findRecord<T>(disk: Disk, kind: RecordKind<T>, path: string): Promise<T | undefined> {
  try {
    return await getRecord(disk, kind, path);
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return undefined;
    throw error;
  }
}

/**
 * Like `findRecord`, but asks the file system itself about an absence: the client of a share may
 * remember that a name was absent.
 */
export async function findRecordSurely<T>(disk: Disk, kind: RecordKind<T>, path: string): Promise<T | undefined> {
  const found = await findRecord(disk, kind, path);
  if (found !== undefined || disk.volume.kind === "local") return found;
  try {
    await disk.look(path);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
  return await findRecord(disk, kind, path);
}

/**
 * True if only this file is unreadable: because of its content, its type (a directory, a FIFO) or
 * its permissions. Files beside it can be read.
 */
export function isUnreadable(error: unknown): boolean {
  return (
    isHoldfastError(error, "CORRUPT", "NEWER_FORMAT", "NO_PERMISSION") ||
    hasErrno(error, "EISDIR", "ENXIO", "ELOOP", "EINVAL", "ENODEV", "EOPNOTSUPP")
  );
}

/** The thing to open, as its first record describes it. */
export interface OpenedRecord {
  /** The kind of thing, for people: "event log". */
  readonly what: string;
  readonly path: string;
  readonly found: { readonly id: string } | undefined;
}

/** Call it before anything is created. Throws NOT_A_STORE and WRONG_STORE. */
export function checkExpectedStore({ what, path, found }: OpenedRecord, { create = true, id }: OpenOptions): void {
  if (typeof create !== "boolean") throw new TypeError("create must be true or false.");
  if (id !== undefined && typeof id !== "string") throw new TypeError("id must be a string.");
  if (found === undefined) {
    if (create && id === undefined) return;
    const message = `There is no ${what} in ${path}, and none was created. Is the share mounted? Mount it, correct the path, or open it once without \`create: false\` and \`id\` to create one.`;
    throw holdfastError("NOT_A_STORE", message, { path });
  }
  if (id === undefined || found.id === id) return;
  const message = `The ${what} in ${path} has the id ${found.id}, not ${id}: this is another one. Mount the right share, or correct the path or the id.`;
  throw holdfastError("WRONG_STORE", message, { path, expected: id, found: found.id });
}

/**
 * Returns an earlier decision, if any, and makes it durable: its author may not have synced it yet,
 * and nothing built on it may outlive it.
 */
export async function findDecision<T>(disk: Disk, kind: RecordKind<T>, path: string): Promise<T | undefined> {
  const found = await findRecord(disk, kind, path);
  if (found !== undefined) await syncNames(disk, parentOf(path));
  return found;
}

/**
 * Returns the record that holds from now on: `proposal`, which must contain a unique id, or the
 * record that another process put there first.
 */
export async function decideRecord<T>(staging: Staging, kind: RecordKind<T>, path: string, proposal: T): Promise<T> {
  if (await putIfAbsent(staging, path, encodeRecord(kind, proposal), { isPermanent: true })) return proposal;
  const decided = await getRecord(staging.disk, kind, path);
  await syncNames(staging.disk, parentOf(path));
  return decided;
}
