// A segment: a file of lines. Its first line, the header, names the end of the previous segment, so
// that the segments form a chain.
import { holdfastError, isHoldfastError } from "../../../errors.ts";
import { putIfAbsent } from "../../../durable/publish/publish.ts";
import type { Staging } from "../../../durable/publish/staging.ts";
import { countOf, objectOf, textOf } from "../../../format/decoding.ts";
import { findSlotNumber, slotName } from "../../../format/name.ts";
import { decodeRecord, encodeRecord, type RecordKind } from "../../../format/record.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import type { Disk, DiskFile } from "../../../ports/disk.ts";
import { contentOf, decodeHead, encodeLine, tipAfter, type LineHead } from "./line.ts";
import { decodeTip, storedTip, type StoredTip, type Tip } from "./tip.ts";

/**
 * Once a segment has this size, the next write session begins a new one. Opening a log scans the newest segment: 8
 * MiB take a moment.
 */
export const segmentBytesMax: number = 8 * 1024 * 1024;

const headerBytesMax = 64 * 1024;
/** All headers so far are shorter. */
const headerBytesMostly = 1024;
const suffix = ".ndjson";

export interface SegmentHeader {
  readonly log: string;
  readonly segment: number;
  /** Id of this file: two files with one number have different ids. */
  readonly id: string;
  /** The final tip of the previous segment. */
  readonly after: Tip;
}

/** A header that was read from its file. */
export interface OpenedHeader extends SegmentHeader {
  /** Length of the header: the first line begins there. */
  readonly bytes: number;
  readonly crc: number;
  /** Length of the whole file. */
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

/** Publishes the file, complete and durable, before any line is added to it. Returns false if the number is taken. */
export async function publishSegment(
  staging: Staging,
  directory: string,
  segment: number,
  bytes: Uint8Array,
): Promise<boolean> {
  return await putIfAbsent(staging, segmentPath(directory, segment), bytes, { isPermanent: true });
}

/**
 * Opens a segment that must exist. Throws CORRUPT if it is missing: no process removes a segment, so its lines are
 * lost.
 */
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
    throw missingSegment(path, error);
  }
}

/** Syncs a segment, which another process may have written. */
export async function syncSegment(disk: Disk, directory: string, segment: number): Promise<void> {
  const file = await disk.open(segmentPath(directory, segment), "write").catch(async (error: unknown) => {
    // A read-only descriptor can sync too, but not on Windows.
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

export function missingSegment(path: string, cause?: unknown): Error {
  const message = `${path} is missing, and the log needs it: the events published in it cannot be read. Restore the file from a backup, or keep what is intact: \`holdfast events verify\` reports it, and with --repair the log continues without the rest. If the whole log was replaced while it was open, open it again.`;
  return holdfastError("CORRUPT", message, { path }, cause);
}

/** True if the segment is really missing: the answer is not stale, and the log was not moved as a whole. */
async function isLost(disk: Disk, directory: string, segment: number): Promise<boolean> {
  // A failed listing proves nothing about a single file.
  const there = await listSegments(disk, directory).catch(() => [segment]);
  if (there.includes(segment)) return false;
  // On a share a failed open proves nothing. But a segment exists before any later one is created: a listing with a
  // later one and without this one proves that it is missing.
  return disk.volume.kind === "local" || there.some((number) => number > segment);
}

/** Throws CORRUPT, also if the segment is missing; NEWER_FORMAT. */
export async function readHeader(disk: Disk, directory: string, segment: number): Promise<OpenedHeader> {
  const path = segmentPath(directory, segment);
  const file = await openSegment(disk, directory, segment);
  try {
    // Opening a log reads the headers of all segments: one short read each.
    let start = await file.read(0, headerBytesMostly);
    if (!start.includes(10)) start = await file.read(0, headerBytesMax);
    const end = start.indexOf(10) + 1;
    const bytes = start.subarray(0, end);
    const header = decodeHeader(bytes, path);
    if (header.segment !== segment) {
      const message = `${path} has the header of segment ${header.segment}: it was copied or renamed. Move it away.`;
      throw holdfastError("CORRUPT", message, { path });
    }
    const { size } = await file.stat();
    return { ...header, after: decodeTip(header.after), bytes: end, crc: recordCrc(bytes), size };
  } finally {
    await file.close();
  }
}

function decodeHeader(bytes: Uint8Array, path: string): StoredHeader {
  try {
    return decodeRecord(headerKind, bytes, path);
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT")) throw error;
    const message = `The header of ${path} is damaged, so nothing shows which lines of this segment were published. Restore the file from a backup, or keep what is intact: \`holdfast events verify\` reports it, and with --repair the log continues with the intact lines.`;
    throw holdfastError("CORRUPT", message, { path }, error);
  }
}

/** True if `path` is a segment of the log in `directory`, and exists. */
export async function isSegment(disk: Disk, directory: string, path: string): Promise<boolean> {
  const number = findSlotNumber(path.slice(path.lastIndexOf("/") + 1, -suffix.length));
  return number !== undefined && path === segmentPath(directory, number) && (await disk.canOpen(path));
}

/** Returns the numbers of all segments, in order. */
export async function listSegments(disk: Disk, directory: string): Promise<number[]> {
  const numbers: number[] = [];
  for (const name of await disk.list(`${directory}/segments`)) {
    // Foreign files are ignored.
    const number = name.endsWith(suffix) ? findSlotNumber(name.slice(0, -suffix.length)) : undefined;
    if (number !== undefined) numbers.push(number);
  }
  return numbers.sort((a, b) => a - b);
}

/** Returns the checksum of a record: the eight digits before the final `"}` and newline. */
function recordCrc(record: Uint8Array): number {
  return Number.parseInt(Buffer.from(record.subarray(-11, -3)).toString("latin1"), 16);
}

/** A line to be written again at another point of the log, with a new checksum. */
export interface CopiedLine extends Pick<LineHead, "events" | "retag"> {
  readonly content: string;
  readonly time: string;
}

export function copyOf(line: Uint8Array): CopiedLine {
  const { events, retag } = decodeHead(line);
  return retag === undefined ? { events, ...contentOf(line) } : { events, retag, ...contentOf(line) };
}

/** Returns a whole segment with these lines, and its end. */
export function encodeSegment(
  header: SegmentHeader,
  lines: readonly CopiedLine[],
): { readonly bytes: Uint8Array; readonly tip: Tip } {
  const { bytes, crc } = encodeHeader(header);
  const parts: Uint8Array[] = [bytes];
  let tip: Tip = { ...header.after, segment: header.segment, length: bytes.length, crc };
  for (const line of lines) {
    const copy = encodeLine(line.content, tip.position + 1, line.time, tip.crc);
    tip = tipAfter(tip, line, copy);
    parts.push(Buffer.from(copy.text));
  }
  return { bytes: Buffer.concat(parts), tip };
}
