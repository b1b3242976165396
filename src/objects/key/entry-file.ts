// The file in a slot: the record of its entry, a line, and right behind it the body of a small
// version.
import { holdfastError } from "../../errors.ts";
import { decodeRecord } from "../../format/record.ts";
import { findIfThere, hasErrno } from "../../ports/disk-error.ts";
import type { Disk, DiskFile, OpenFileOptions } from "../../ports/disk.ts";
import { entryBytesMax, entryKind, type KeyEntry } from "../model/entry.ts";

/** Read at once: most records fit, and with them most of the small bodies. */
const firstReadBytes = 8 * 1024;
const lineFeed = 0x0a;

/** An entry that was read, with what lies behind its record. */
export interface SlotContent {
  readonly entry: KeyEntry;
  /** Where the body begins in the file. */
  readonly bodyAt: number;
}

/** A slot as it was read. */
export interface ReadSlot extends SlotContent {
  /** All bytes of the file, where it is so small that they came with the record. */
  readonly file?: Uint8Array;
}

/** Undefined when nothing has this name. CORRUPT, NEWER_FORMAT. */
export async function findSlot(disk: Disk, path: string): Promise<SlotContent | undefined> {
  const file = await openIfThere(disk, path);
  if (file === undefined) return undefined;
  try {
    const { entry, bodyAt } = await readSlot(file, path);
    return { entry, bodyAt };
  } catch (error) {
    // On a share another machine may have removed it since it was opened.
    if (hasErrno(error, "ESTALE")) return undefined;
    throw error;
  } finally {
    await file.close();
  }
}

/** CORRUPT, NEWER_FORMAT. */
export async function readSlot(file: DiskFile, path: string): Promise<ReadSlot> {
  let bytes = await file.read(0, firstReadBytes);
  // Less than was asked for: the file ends there.
  const isWhole = bytes.length < firstReadBytes;
  let end = bytes.indexOf(lineFeed);
  if (end < 0 && bytes.length === firstReadBytes) {
    bytes = await file.read(0, entryBytesMax);
    end = bytes.indexOf(lineFeed);
  }
  if (end < 0) {
    const message = `${path} is not a valid version record: it has no end. Restore it from a backup, or move it away.`;
    throw holdfastError("CORRUPT", message, { path });
  }
  const entry = decodeRecord(entryKind, bytes.subarray(0, end + 1), path);
  return { entry, bodyAt: end + 1, ...(isWhole ? { file: bytes } : {}) };
}

/** As the file system itself knows, also on a share. */
export async function isSlotThere(disk: Disk, path: string): Promise<boolean> {
  if (disk.volume.kind === "local") return await disk.canOpen(path);
  return (await findIfThere(disk.look(path))) !== undefined;
}

/** Undefined when nothing has this name. */
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
