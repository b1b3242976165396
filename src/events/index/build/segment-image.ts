// Builds the bytes of the index of one segment, from the segment itself or from its index in
// memory.
import { holdfastError } from "../../../errors.ts";
import { contentOf } from "./active-content.ts";
import { ActiveIndex } from "../memory/active-index.ts";
import { writeIndex } from "./index-writer.ts";
import type { IndexedLine, SealedSegment } from "../keys/indexed-line.ts";

/** Reads a segment from its first line to its last. */
export type ScanSegment = (segment: SealedSegment) => AsyncIterable<IndexedLine>;

/**
 * Returns the in-memory index of the segment with this position, if this process followed the log
 * while it was written.
 */
export type FindActive = (position: number) => ActiveIndex | undefined;

export interface ImageSource {
  readonly scan: ScanSegment;
  readonly findActive?: FindActive | undefined;
  /** Called often; yields to the event loop. */
  readonly pause?: (() => Promise<void>) | undefined;
}

/**
 * Throws CORRUPT if the segment does not end with the expected position: an index of it would
 * misplace all later events.
 */
export async function imageOf(
  logId: string,
  segment: SealedSegment,
  { scan, findActive, pause }: ImageSource,
): Promise<Uint8Array> {
  const index = findActiveOf(segment, findActive) ?? (await read(segment, scan));
  if (index.last !== segment.last) throw otherEvents(segment, index.last);
  const parts: { readonly offset: number; readonly bytes: Uint8Array }[] = [];
  await writeIndex({ logId, segments: [segment] }, contentOf(index), async (offset, bytes) => {
    parts.push({ offset, bytes });
    await pause?.();
  });
  const image = new Uint8Array(Math.max(...parts.map(({ offset, bytes }) => offset + bytes.length)));
  for (const { offset, bytes } of parts) image.set(bytes, offset);
  return image;
}

/** Returns undefined for a segment without events: its first position is that of the next segment. */
export function findActiveOf(
  { first, last }: Pick<SealedSegment, "first" | "last">,
  findActive: FindActive | undefined,
): ActiveIndex | undefined {
  const index = findActive?.(first);
  return index?.first === first && index.last === last ? index : undefined;
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
