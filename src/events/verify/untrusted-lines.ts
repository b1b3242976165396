// Reads the lines of a file without trusting them: a line may be incomplete or too long, and the file may be too
// short.
import type { DiskFile } from "../../ports/disk.ts";
import { lineBytesMax } from "../log/format/line.ts";

const chunkBytes = 256 * 1024;
const newline = 10;

export interface UntrustedLine {
  readonly offset: number;
  /** With its newline, if it has one. */
  readonly bytes: Uint8Array;
  /**
   * False if the line has no newline before the end, or is longer than any line may be. Then `bytes` is only its
   * beginning.
   */
  readonly isWhole: boolean;
}

/** Yields chunks of pieces. Ends before `to` if the file does. */
export async function* untrustedLines(
  file: DiskFile,
  from: number,
  to: number,
): AsyncGenerator<readonly UntrustedLine[], void> {
  let offset = from;
  let length = chunkBytes;
  while (offset < to) {
    const wanted = Math.min(length, to - offset);
    const chunk = await file.read(offset, wanted);
    const pieces: UntrustedLine[] = [];
    let start = 0;
    for (let end = chunk.indexOf(newline) + 1; end > 0; end = chunk.indexOf(newline, start) + 1) {
      pieces.push({ offset: offset + start, bytes: chunk.subarray(start, end), isWhole: true });
      start = end;
    }
    const isEnd = chunk.length < wanted || offset + chunk.length === to;
    if (isEnd && start < chunk.length)
      pieces.push({ offset: offset + start, bytes: chunk.subarray(start), isWhole: false });
    if (pieces.length > 0) yield pieces;
    if (isEnd) return;
    offset += start;
    if (start > 0) length = chunkBytes;
    else if (length <= lineBytesMax) length *= 4;
    else {
      yield [{ offset, bytes: chunk, isWhole: false }];
      offset = await nextLine(file, offset + chunk.length, to);
      length = chunkBytes;
    }
  }
}

async function nextLine(file: DiskFile, from: number, to: number): Promise<number> {
  for (let offset = from; offset < to;) {
    const chunk = await file.read(offset, Math.min(chunkBytes, to - offset));
    const end = chunk.indexOf(newline);
    if (end >= 0) return offset + end + 1;
    if (chunk.length === 0) return to;
    offset += chunk.length;
  }
  return to;
}
