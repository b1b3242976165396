// The file in a slot: the record of its entry as one line, followed by the body of a small version.
import { isUnreadable } from "../../durable/publish/record-file.ts";
import { holdfastError, isHoldfastError, type HoldfastError } from "../../errors.ts";
import { decodeRecord } from "../../format/record.ts";
import { findIfThere, hasErrno } from "../../ports/disk-error.ts";
import type { Disk, DiskFile, OpenFileOptions } from "../../ports/disk.ts";
import { readLegible, type DamagedEntry, type LegibleFields, type SlotEntry } from "../model/damaged-entry.ts";
import { entryBytesMax, entryKind, type KeyEntry } from "../model/entry.ts";

/** Size of the first read. It covers most records together with their small bodies. */
const firstReadBytes = 8 * 1024;
const lineFeed = 0x0a;

/** An entry, and where its body begins. */
export interface SlotContent {
  readonly entry: KeyEntry;
  /** Byte offset of the body in the file. */
  readonly bodyAt: number;
}

/** A slot that may be damaged. */
export interface FoundSlot {
  readonly entry: SlotEntry;
  readonly bodyAt: number;
}

export interface ReadSlot extends SlotContent {
  /** All bytes of the file, if the first read covered them. */
  readonly file?: Uint8Array;
}

/**
 * Reads the entry of a slot. Returns undefined if the file does not exist. Throws CORRUPT or
 * NEWER_FORMAT.
 */
export async function findSlot(disk: Disk, path: string): Promise<SlotContent | undefined> {
  const file = await openIfThere(disk, path);
  if (file === undefined) return undefined;
  try {
    const { entry, bodyAt } = await readSlot(file, path);
    return { entry, bodyAt };
  } catch (error) {
    // On a share, another machine may have removed the file after it was opened.
    if (hasErrno(error, "ESTALE")) return undefined;
    throw error;
  } finally {
    await file.close();
  }
}

/**
 * Like `findSlot`, but returns a damaged slot where `findSlot` throws: damage must not block the
 * other slots.
 */
export async function findSlotOrDamage(disk: Disk, path: string): Promise<FoundSlot | undefined> {
  try {
    return await findSlot(disk, path);
  } catch (error) {
    if (!isSlotDamage(disk, error)) throw error;
    return damagedSlot(error, await legibleIn(disk, path, error));
  }
}

/**
 * True if reading failed because of this slot. On a share, EIO means that a request got no reply,
 * which says nothing about the slot.
 */
export function isSlotDamage(disk: Disk, error: unknown): error is HoldfastError {
  return isUnreadable(error) || (disk.volume.kind === "local" && hasErrno(error, "EIO"));
}

export function damagedSlot(
  error: HoldfastError,
  legible: LegibleFields = {},
): FoundSlot & { readonly entry: DamagedEntry } {
  return { entry: { kind: "damaged", error, legible }, bodyAt: 0 };
}

async function legibleIn(disk: Disk, path: string, error: unknown): Promise<LegibleFields> {
  // A newer release may have changed the meaning of every field.
  if (!isHoldfastError(error, "CORRUPT")) return {};
  try {
    const file = await disk.open(path, "read");
    try {
      return readLegible(await file.read(0, firstReadBytes));
    } finally {
      await file.close();
    }
  } catch {
    // The record failed its checksum, so its legible fields are only hints.
    return {};
  }
}

/** Throws CORRUPT or NEWER_FORMAT. */
export async function readSlot(file: DiskFile, path: string): Promise<ReadSlot> {
  let bytes = await file.read(0, firstReadBytes);
  // A short read means the end of the file.
  const isWhole = bytes.length < firstReadBytes;
  let end = bytes.indexOf(lineFeed);
  if (end < 0 && bytes.length === firstReadBytes) {
    bytes = await file.read(0, entryBytesMax);
    end = bytes.indexOf(lineFeed);
  }
  if (end < 0) {
    const message = `${path} is not a valid version record: its first line has no end. Restore it from a backup, or move it away.`;
    throw holdfastError("CORRUPT", message, { path });
  }
  const entry = decodeRecord(entryKind, bytes.subarray(0, end + 1), path);
  return { entry, bodyAt: end + 1, ...(isWhole ? { file: bytes } : {}) };
}

/**
 * True if the file exists according to the file system itself, bypassing the cache of a share's
 * client.
 */
export async function isSlotThere(disk: Disk, path: string): Promise<boolean> {
  if (disk.volume.kind === "local") return await disk.canOpen(path);
  return (await findIfThere(disk.look(path))) !== undefined;
}

/** Returns the names in a directory; undefined if it does not exist. */
export async function findNames(disk: Disk, directory: string): Promise<string[] | undefined> {
  try {
    return await disk.list(directory);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ESTALE", "ENOTDIR")) return undefined;
    throw error;
  }
}

/** Undefined if the file does not exist. */
export async function openIfThere(
  disk: Disk,
  path: string,
  options: OpenFileOptions = {},
): Promise<DiskFile | undefined> {
  try {
    return await disk.open(path, "read", options);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR", "ESTALE")) return undefined;
    throw error;
  }
}
