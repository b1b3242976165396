// One small record under a fixed name: the first process decides it, all later ones read it.
import type { OpenOptions } from "../../common.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { decodeRecord, encodeRecord, recordBytesMax, type RecordKind } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { parentOf, syncNames } from "./directory.ts";
import { putIfAbsent } from "./publish.ts";
import type { Staging } from "./staging.ts";

/** CORRUPT, NEWER_FORMAT; IO_ERROR (ENOENT) when there is none. */
export async function getRecord<T>(disk: Disk, kind: RecordKind<T>, path: string): Promise<T> {
  return decodeRecord(kind, await readWhole(disk, kind, path), path);
}

async function readWhole(disk: Disk, kind: RecordKind<unknown>, path: string): Promise<Uint8Array> {
  try {
    return await disk.readFile(path, recordBytesMax);
  } catch (error) {
    if (!hasErrno(error, "EFBIG")) throw error;
    const message = `${path} is not a valid ${kind.kind} record: it has over ${recordBytesMax} bytes. Restore it from a backup, or move it away.`;
    throw holdfastError("CORRUPT", message, { path }, error);
  }
}

export async function findRecord<T>(disk: Disk, kind: RecordKind<T>, path: string): Promise<T | undefined> {
  try {
    return await getRecord(disk, kind, path);
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return undefined;
    throw error;
  }
}

/** The same, but an absence is the file system's own answer: on a share a client may remember that a name was absent. */
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
 * True when this one file cannot be read: by what is in it, by what it is (a directory, a FIFO), or by its rights.
 * Others beside it can be.
 */
export function isUnreadable(error: unknown): boolean {
  return (
    isHoldfastError(error, "CORRUPT", "NEWER_FORMAT", "NO_PERMISSION") ||
    hasErrno(error, "EISDIR", "ENXIO", "ELOOP", "EINVAL", "ENODEV", "EOPNOTSUPP")
  );
}

/** What is to be opened, as its first record knows it. */
export interface Opened {
  /** For people: "event log". */
  readonly what: string;
  readonly path: string;
  readonly found: { readonly id: string } | undefined;
}

/** Before anything is made. NOT_A_STORE, WRONG_STORE. */
export function checkExpectedStore({ what, path, found }: Opened, { create = true, id }: OpenOptions): void {
  if (typeof create !== "boolean") throw new TypeError("create must be true or false.");
  if (id !== undefined && typeof id !== "string") throw new TypeError("id must be a string.");
  if (found === undefined) {
    if (create && id === undefined) return;
    const message = `There is no ${what} in ${path}, and none was made. Is the share mounted? Mount it, correct the path, or open it once without \`create: false\` and \`id\` to make a new one.`;
    throw holdfastError("NOT_A_STORE", message, { path });
  }
  if (id === undefined || found.id === id) return;
  const message = `The ${what} in ${path} has the id ${found.id}, not ${id}: this is another one. Mount the right share, or correct the path or the id.`;
  throw holdfastError("WRONG_STORE", message, { path, expected: id, found: found.id });
}

/**
 * A decision that was made before, if any. Durable when it is returned: its author may not have
 * synced it yet, and what is built on it must not outlive it.
 */
export async function findDecision<T>(disk: Disk, kind: RecordKind<T>, path: string): Promise<T | undefined> {
  const found = await findRecord(disk, kind, path);
  if (found !== undefined) await syncNames(disk, parentOf(path));
  return found;
}

/**
 * The record that holds from now on: `proposal`, which must carry an id of its own, or what another
 * process has put there before.
 */
export async function decideRecord<T>(staging: Staging, kind: RecordKind<T>, path: string, proposal: T): Promise<T> {
  if (await putIfAbsent(staging, path, encodeRecord(kind, proposal), { isPermanent: true })) return proposal;
  const decided = await getRecord(staging.disk, kind, path);
  await syncNames(staging.disk, parentOf(path));
  return decided;
}
