// Lines that are written again in another place of the log: what they say stays as it was, and their checksums are those of the new place.
import { contentOf, decodeHead, encodeLine, tipAfter, type LineHead } from "./line.ts";
import { encodeHeader, type SegmentHeader } from "./segment.ts";
import type { Tip } from "./tip.ts";

export interface CopiedLine extends Pick<LineHead, "events" | "retag"> {
  readonly content: string;
  readonly time: string;
}

export function copyOf(line: Uint8Array): CopiedLine {
  const { events, retag } = decodeHead(line);
  return retag === undefined ? { events, ...contentOf(line) } : { events, retag, ...contentOf(line) };
}

/** A whole segment with these lines in it, and where it ends. */
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
