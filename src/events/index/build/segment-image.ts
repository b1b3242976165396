// The bytes of the index of one segment, made by reading the segment, or from what its writer still has in memory.
import { holdfastError } from "../../../errors.ts";
import { contentOf } from "./active-content.ts";
import { ActiveIndex } from "../memory/active-index.ts";
import { writeIndex } from "./index-writer.ts";
import type { IndexedLine, SealedSegment } from "../indexed-line.ts";

/** Reads a segment from its first line to its last. */
export type ScanSegment = (segment: SealedSegment) => AsyncIterable<IndexedLine>;

/** The index that whoever followed the log still has in memory of the segment with this position. */
export type FindActive = (position: number) => ActiveIndex | undefined;

export interface ImageSource {
  readonly scan: ScanSegment;
  readonly findActive?: FindActive | undefined;
  /** Called often, so that others get their turn on the thread. */
  readonly pause?: (() => Promise<void>) | undefined;
}

/** CORRUPT when the segment does not have the events that it is said to have: an index of it would misplace all that follow. */
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

/** Undefined for a segment without events: its position is that of the next one. */
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
