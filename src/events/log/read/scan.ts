// Reads the lines of a segment in order, each checked against the previous one.
import { holdfastError } from "../../../errors.ts";
import type { Disk, DiskFile } from "../../../ports/disk.ts";
import {
  decodeHead,
  decodeLine,
  findLineCrc,
  lineBytesMax,
  lineTailBytes,
  storedCrcOf,
  type Line,
  type LineHead,
} from "../format/line.ts";
import { openSegment, segmentPath } from "../format/segment.ts";
import type { Tip } from "../format/tip.ts";

/** Small enough for the disk port's fast path, large enough for thousands of lines. */
const chunkBytes = 256 * 1024;

export interface RawLine {
  readonly offset: number;
  /** With the newline. */
  readonly bytes: Uint8Array;
  readonly crc: number;
}

export interface SegmentRange {
  readonly segment: number;
  readonly from: number;
  readonly to: number;
  /** The checksum of the line that ends at `from`, which seeds the next. */
  readonly crc: number;
}

/**
 * Yields lines between two published points. An invalid line is damage and throws CORRUPT. Yields several at a time:
 * a promise per line would cost more than the line.
 */
export async function* scanPublished(
  disk: Disk,
  directory: string,
  stretch: SegmentRange,
): AsyncGenerator<readonly RawLine[], void> {
  if (stretch.from >= stretch.to) return;
  const path = segmentPath(directory, stretch.segment);
  const file = await openSegment(disk, directory, stretch.segment);
  try {
    let offset = stretch.from;
    for await (const lines of scanFile(file, stretch)) {
      const last = lines.at(-1);
      if (last !== undefined) offset = last.offset + last.bytes.length;
      yield lines;
    }
    if (offset !== stretch.to) throw damaged(path, offset);
  } finally {
    await file.close();
  }
}

/** Yields lines up to `to`, or up to the first byte that is not part of a valid line. */
export async function* scanFile(
  file: DiskFile,
  { from, to, crc }: SegmentRange,
): AsyncGenerator<readonly RawLine[], void> {
  let seed = crc;
  let offset = from;
  // Bytes per read. Grows for a line that does not fit.
  let length = chunkBytes;
  while (offset < to) {
    const chunk = await file.read(offset, Math.min(length, to - offset));
    const lines: RawLine[] = [];
    let start = 0;
    for (let end = chunk.indexOf(10) + 1; end > 0; end = chunk.indexOf(10, start) + 1) {
      const bytes = chunk.subarray(start, end);
      const found = findLineCrc(bytes, seed);
      if (found === undefined) {
        yield lines;
        return;
      }
      lines.push({ offset: offset + start, bytes, crc: found });
      seed = found;
      start = end;
    }
    yield lines;
    if (start === 0) {
      const isAll = chunk.length < Math.min(length, to - offset) || chunk.length === to - offset;
      if (isAll || length > lineBytesMax) return;
      length *= 4;
      continue;
    }
    offset += start;
    length = chunkBytes;
  }
}

/** The end of a line, or of a header: both end in the same way. */
type End = Pick<Tip, "length" | "crc">;

/**
 * `stands`: true if a line or header with this checksum ends there. `next`: the first byte after it. One read for both,
 * because the file may change between two reads.
 */
export async function readEnd(
  file: DiskFile,
  { length, crc }: End,
): Promise<{ readonly stands: boolean; readonly next: number | undefined }> {
  const bytes = await file.read(length - lineTailBytes, lineTailBytes + 1);
  return { stands: storedCrcOf(bytes.subarray(0, lineTailBytes)) === crc, next: bytes[lineTailBytes] };
}

export async function endsAt(file: DiskFile, end: End): Promise<boolean> {
  return (await readEnd(file, end)).stands;
}

/**
 * Room on a local disk: spaces after the lines of a segment, which later lines overwrite. No reader sees them: they
 * lie beyond the tip, and no line begins with a space.
 */
export const space: number = 0x20;
const newline = 0x0a;

export function isPreallocated(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === space);
}

/** True if there is nothing but room after `from`. */
export async function isPreallocatedFrom(file: DiskFile, from: number): Promise<boolean> {
  for await (const bytes of restOf(file, from)) if (!isPreallocated(bytes)) return false;
  return true;
}

/** True if there is a newline anywhere after `from`. */
export async function hasLineEnd(file: DiskFile, from: number): Promise<boolean> {
  for await (const bytes of restOf(file, from)) if (bytes.includes(newline)) return true;
  return false;
}

async function* restOf(file: DiskFile, from: number): AsyncGenerator<Uint8Array, void> {
  const { size } = await file.stat();
  for (let offset = from; offset < size; offset += chunkBytes)
    yield await file.read(offset, Math.min(chunkBytes, size - offset));
}

type LocatedLine = Pick<RawLine, "offset" | "bytes">;

/**
 * Returns the head of a line. Throws CORRUPT if the checksum is right but the content is not a line: another program
 * wrote it.
 */
export function headOf(path: string, line: LocatedLine): LineHead {
  return decoded(path, line, decodeHead);
}

/** Returns the whole line. Throws CORRUPT like `headOf`. */
export function lineOf(path: string, line: LocatedLine): Line {
  return decoded(path, line, decodeLine);
}

function decoded<T>(path: string, { offset, bytes }: LocatedLine, decode: (bytes: Uint8Array) => T): T {
  try {
    return decode(bytes);
  } catch (error) {
    throw damaged(path, offset, error);
  }
}

export function damaged(path: string, byte: number, cause?: unknown): Error {
  const message = `${path} is damaged at byte ${byte}: these bytes were published and have changed since. Restore the file from a backup, or keep what is intact: \`holdfast events verify\` reports it, and with --repair the log continues without the rest.`;
  return holdfastError("CORRUPT", message, { path }, cause);
}
