// Reads the lines of a segment in order, each checked against the one before.
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

/** Small enough for the fast path of the disk port, large enough for thousands of lines. */
const chunkBytes = 256 * 1024;

export interface RawLine {
  readonly offset: number;
  /** With the newline. */
  readonly bytes: Uint8Array;
  readonly crc: number;
}

export interface Stretch {
  readonly segment: number;
  readonly from: number;
  readonly to: number;
  /** The checksum of the line that ends at `from`. */
  readonly crc: number;
}

/**
 * Lines from `from` to `to`, all published: an invalid one is damage (CORRUPT). In chunks: a
 * promise for each line would cost more than the lines.
 */
export async function* scanPublished(
  disk: Disk,
  directory: string,
  stretch: Stretch,
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

/** Lines up to `to` or up to the first byte that is not part of a valid line. */
export async function* scanFile(file: DiskFile, { from, to, crc }: Stretch): AsyncGenerator<readonly RawLine[], void> {
  let seed = crc;
  let offset = from;
  // The length of a chunk; grows for a line that does not fit.
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
 * Whether the line that the tip names is there, and the first byte behind it. One read: the file
 * may change between two.
 */
export async function lookAtEnd(
  file: DiskFile,
  { length, crc }: End,
): Promise<{ readonly stands: boolean; readonly next: number | undefined }> {
  const bytes = await file.read(length - lineTailBytes, lineTailBytes + 1);
  return { stands: storedCrcOf(bytes.subarray(0, lineTailBytes)) === crc, next: bytes[lineTailBytes] };
}

export async function standsIn(file: DiskFile, end: End): Promise<boolean> {
  return (await lookAtEnd(file, end)).stands;
}

type LineAt = Pick<RawLine, "offset" | "bytes">;

/**
 * The head of a line. CORRUPT when the checksum fits and the content is no line: another program
 * wrote it.
 */
export function headOf(path: string, line: LineAt): LineHead {
  return decoded(path, line, decodeHead);
}

/** The whole line. CORRUPT, as above. */
export function lineOf(path: string, line: LineAt): Line {
  return decoded(path, line, decodeLine);
}

function decoded<T>(path: string, { offset, bytes }: LineAt, decode: (bytes: Uint8Array) => T): T {
  try {
    return decode(bytes);
  } catch (error) {
    throw damaged(path, offset, error);
  }
}

export function damaged(path: string, byte: number, cause?: unknown): Error {
  const message = `${path} is damaged at byte ${byte}: what stands there was published and is not what was written. Restore the file from a backup, or keep all that is whole: \`holdfast events verify\` tells what that is, and with --repair the log goes on without the rest.`;
  return holdfastError("CORRUPT", message, { path }, cause);
}
