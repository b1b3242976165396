// A segment: a file of lines. Its first line, a record, says after which point of which segment it goes on, so the segments are a chain of their own.
import { holdfastError, isHoldfastError } from "../../../errors.ts";
import { putIfAbsent } from "../../../durable/publish/publish.ts";
import type { Staging } from "../../../durable/publish/staging.ts";
import { countOf, objectOf, textOf } from "../../../format/decoding.ts";
import { findSlotNumber, slotName } from "../../../format/name.ts";
import { decodeRecord, encodeRecord, type RecordKind } from "../../../format/record.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import type { Disk, DiskFile } from "../../../ports/disk.ts";
import { decodeTip, storedTip, type StoredTip, type Tip } from "./tip.ts";

/** From this size on, the next tenure begins a new one: so small that it is scanned at an opening in a moment. */
export const segmentBytesMax: number = 8 * 1024 * 1024;

const headerBytesMax = 64 * 1024;
/** Of all that were ever seen. */
const headerBytesMostly = 1024;
const suffix = ".ndjson";

export interface SegmentHeader {
  readonly log: string;
  readonly segment: number;
  /** Of this very file: two that were made for one number can be told apart. */
  readonly id: string;
  /** Where the segment before it ends for good. */
  readonly after: Tip;
}

/** A header as read, and where the first line after it begins. */
export interface OpenedHeader extends SegmentHeader {
  readonly bytes: number;
  readonly crc: number;
  /** Of the whole file. */
  readonly size: number;
}

interface StoredHeader extends Omit<SegmentHeader, "after"> {
  readonly after: StoredTip;
}

const headerKind: RecordKind<StoredHeader> = {
  kind: "segment",
  decode: (value) => {
    const { log, segment, id, after } = objectOf(value);
    return {
      log: textOf(log),
      segment: countOf(segment),
      id: textOf(id),
      after: storedTip(decodeTip(after)),
    };
  },
};

export function segmentPath(directory: string, segment: number): string {
  return `${directory}/segments/${slotName(segment)}${suffix}`;
}

export function encodeHeader(header: SegmentHeader): { readonly bytes: Uint8Array; readonly crc: number } {
  const bytes = encodeRecord(headerKind, { ...header, after: storedTip(header.after) });
  return { bytes, crc: recordCrc(bytes) };
}

/** Makes the file complete and durable under its name before anything is added to it. False when the number is taken. */
export async function publishSegment(
  staging: Staging,
  directory: string,
  segment: number,
  bytes: Uint8Array,
): Promise<boolean> {
  return await putIfAbsent(staging, segmentPath(directory, segment), bytes, { isPermanent: true });
}

/** One that counts. CORRUPT when it is not there: nobody removes a segment, so it was lost, and what it had in it with it. */
export async function openSegment(
  disk: Disk,
  directory: string,
  segment: number,
  mode: "read" | "write" = "read",
): Promise<DiskFile> {
  const path = segmentPath(directory, segment);
  try {
    return await disk.open(path, mode);
  } catch (error) {
    if (!hasErrno(error, "ENOENT") || !(await isLost(disk, directory, segment))) throw error;
    throw missing(path, error);
  }
}

/** Makes all of it durable, whoever wrote it. */
export async function syncSegment(disk: Disk, directory: string, segment: number): Promise<void> {
  const file = await disk.open(segmentPath(directory, segment), "write").catch(async (error: unknown) => {
    // Who may only read can sync all the same, but not on Windows.
    if (isHoldfastError(error, "NO_PERMISSION") || hasErrno(error, "ENOENT"))
      return await openSegment(disk, directory, segment);
    throw error;
  });
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

export function missing(path: string, cause?: unknown): Error {
  const message = `${path} is missing, and the log needs it: what was published in it cannot be read. Restore the file from a backup, or keep all that is whole: \`holdfast events verify\` tells what that is, and with --repair the log goes on without the rest. If the whole log was replaced while it was open, open it again.`;
  return holdfastError("CORRUPT", message, { path }, cause);
}

/** Whether it is gone, and not only the answer an old one, or the whole log moved away. */
async function isLost(disk: Disk, directory: string, segment: number): Promise<boolean> {
  // A listing that fails tells nothing of a single file.
  const there = await listSegments(disk, directory).catch(() => [segment]);
  if (there.includes(segment)) return false;
  // On a share no absence is believed by itself. But one that counts was there before any later one was made: who sees that one, and not this one, sees that it is gone.
  return disk.volume.kind === "local" || there.some((number) => number > segment);
}

/** CORRUPT, also when it is not there; NEWER_FORMAT. */
export async function readHeader(disk: Disk, directory: string, segment: number): Promise<OpenedHeader> {
  const path = segmentPath(directory, segment);
  const file = await openSegment(disk, directory, segment);
  try {
    // All of them are read when a log is opened.
    let start = await file.read(0, headerBytesMostly);
    if (!start.includes(10)) start = await file.read(0, headerBytesMax);
    const end = start.indexOf(10) + 1;
    const bytes = start.subarray(0, end);
    const header = decodeRecord(headerKind, bytes, path);
    if (header.segment !== segment) {
      const message = `${path} says that it is segment ${header.segment}: it was copied or renamed. Move it away.`;
      throw holdfastError("CORRUPT", message, { path });
    }
    const { size } = await file.stat();
    return { ...header, after: decodeTip(header.after), bytes: end, crc: recordCrc(bytes), size };
  } finally {
    await file.close();
  }
}

/** Numbers of the segments that are there, in order. */
export async function listSegments(disk: Disk, directory: string): Promise<number[]> {
  const numbers: number[] = [];
  for (const name of await disk.list(`${directory}/segments`)) {
    // Foreign files are none of our business.
    const number = name.endsWith(suffix) ? findSlotNumber(name.slice(0, -suffix.length)) : undefined;
    if (number !== undefined) numbers.push(number);
  }
  return numbers.sort((a, b) => a - b);
}

/** Of the record itself: its last eight digits before `"}` and the newline. */
function recordCrc(record: Uint8Array): number {
  return Number.parseInt(Buffer.from(record.subarray(-11, -3)).toString("latin1"), 16);
}
