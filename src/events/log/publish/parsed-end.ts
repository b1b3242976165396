// The end of a segment by its own lines, for a log on one machine after a restart or after a writer
// died.
import { tipAfter } from "../format/line.ts";
import type { LogFiles } from "../log-files.ts";
import { hasLineEnd } from "./preallocation.ts";
import { damaged, headOf, scanFile } from "../read/scan.ts";
import { openSegment, readHeader, segmentPath } from "../format/segment.ts";
import { emptyTip, isEqualTip, isSameTip, type Tip } from "../format/tip.ts";

export interface Parsing {
  /**
   * A point that counted before: if it is in this segment, its lines must pass it. Default: none.
   */
  readonly floor?: Tip | undefined;
  /**
   * An invalid line that ends in a newline is damage. Default: it is an unfinished write, and the
   * log ends before it.
   */
  readonly isStrict?: boolean | undefined;
}

/** Where the valid lines of a segment end. CORRUPT. */
export async function parsedEndOf(
  { disk, directory }: LogFiles,
  segment: number,
  { floor = emptyTip, isStrict = false }: Parsing = {},
): Promise<Tip> {
  const path = segmentPath(directory, segment);
  const header = await readHeader(disk, directory, segment);
  const file = await openSegment(disk, directory, segment);
  try {
    let tip: Tip = { ...header.after, segment, length: header.bytes, crc: header.crc };
    let isPassed = floor.segment !== segment || isEqualTip(tip, floor);
    for await (const lines of scanFile(file, { segment, from: tip.length, to: header.size, crc: tip.crc }))
      for (const line of lines) {
        tip = tipAfter(tip, headOf(path, line), { bytes: line.bytes.length, crc: line.crc });
        isPassed ||= isSameTip(tip, floor) && isEqualTip(tip, floor);
      }
    if (!isPassed || (isStrict && (await hasLineEnd(file, tip.length))))
      throw damaged(path, isPassed ? tip.length : Math.min(tip.length, floor.length));
    return tip;
  } finally {
    await file.close();
  }
}

/** Whole lines behind a point of a segment, and their end. */
export async function linesBehind(
  { disk, directory }: LogFiles,
  tip: Tip,
): Promise<{ readonly lines: readonly Uint8Array[]; readonly end: Tip }> {
  const { segment, length: from, crc } = tip;
  const path = segmentPath(directory, segment);
  const file = await openSegment(disk, directory, segment);
  try {
    const found: Uint8Array[] = [];
    let end = tip;
    for await (const lines of scanFile(file, { segment, from, to: (await file.stat()).size, crc }))
      for (const line of lines) {
        found.push(Uint8Array.from(line.bytes));
        end = tipAfter(end, headOf(path, line), { bytes: line.bytes.length, crc: line.crc });
      }
    return { lines: found, end };
  } finally {
    await file.close();
  }
}
