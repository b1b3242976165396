// The bytes of the index of one segment, made by reading the segment, or from what its writer still has in memory.
import { holdfastError } from "../../errors.ts";
import { contentOf } from "./active-content.ts";
import { ActiveIndex } from "./active-index.ts";
import { writeIndex } from "./index-writer.ts";
import type { IndexedLine, SealedSegment } from "./indexed-line.ts";

/** Reads a segment from its first line to its last. */
export type ScanSegment = (segment: SealedSegment) => AsyncIterable<IndexedLine>;

/** The index that whoever wrote the segment still has in memory. */
export type FindActive = (segment: SealedSegment) => ActiveIndex | undefined;

/** CORRUPT when the segment does not have the events that it is said to have: an index of it would misplace all that follow. */
export async function imageOf(
  logId: string,
  segment: SealedSegment,
  { scan, findActive }: { readonly scan: ScanSegment; readonly findActive?: FindActive | undefined },
): Promise<Uint8Array> {
  const index = findActive?.(segment) ?? (await read(segment, scan));
  if (index.last !== segment.last) throw otherEvents(segment, index.last);
  const parts: { readonly offset: number; readonly bytes: Uint8Array }[] = [];
  await writeIndex({ logId, segments: [segment] }, contentOf(index), async (offset, bytes) => {
    parts.push({ offset, bytes });
  });
  const image = new Uint8Array(Math.max(...parts.map(({ offset, bytes }) => offset + bytes.length)));
  for (const { offset, bytes } of parts) image.set(bytes, offset);
  return image;
}

async function read(segment: SealedSegment, scan: ScanSegment): Promise<ActiveIndex> {
  const index = new ActiveIndex(segment.first);
  for await (const line of scan(segment)) index.add(line);
  return index;
}

function otherEvents({ number, last }: SealedSegment, found: number): Error {
  const message = `Segment ${number} of the log should end with position ${last}, but its last line has ${found}. Restore it from a backup.`;
  return holdfastError("CORRUPT", message, { path: String(number) });
}
