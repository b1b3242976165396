// The layout of an index file: a header that names the log and the bytes that the index was built
// from, then sections of blocks, each with its own checksum.
import { crc32 } from "node:zlib";
import { countOf, listOf, objectOf, textOf } from "../../../format/decoding.ts";
import { slotName } from "../../../format/name.ts";
import { decodeRecord, encodeRecord, type RecordKind } from "../../../format/record.ts";
import { filterBitsOf } from "./filter.ts";
import type { SealedSegment } from "../keys/indexed-line.ts";
import type { TimeRange } from "../keys/time-range.ts";

/** The unit in which an index file is read. */
export const blockBytes = 4096;
/** A block without its checksum. */
export const payloadBytes = 4092;

/**
 * Writes the checksum into a full block. It includes `stamp` and `number`: a block of another file,
 * or from another offset, does not pass.
 */
export function sealBlock(block: Buffer, number: number, stamp: number): void {
  block.writeUInt32LE(checksumOf(block, number, stamp), payloadBytes);
}

export function isSealed(block: Buffer, number: number, stamp: number): boolean {
  return block.length === blockBytes && block.readUInt32LE(payloadBytes) === checksumOf(block, number, stamp);
}

function checksumOf(block: Buffer, number: number, stamp: number): number {
  return crc32(block.subarray(0, payloadBytes), (stamp + number) >>> 0);
}

/** Writes bytes of an index file at an offset. */
export type WriteAt = (offset: number, bytes: Uint8Array) => Promise<void>;

/**
 * A line as stored: `first` counts from the first position of the index, `segment` is an index into
 * `Coverage.segments`.
 */
export interface StoredLine {
  readonly first: number;
  readonly segment: number;
  readonly offset: number;
  readonly bytes: number;
}

/** The segments that an index covers. It serves exactly these. */
export interface Coverage {
  readonly logId: string;
  /** Consecutive; at least one. */
  readonly segments: readonly SealedSegment[];
}

/** The first block of each section, counted from the end of the header. */
export interface Layout {
  readonly keyCount: number;
  readonly lineCount: number;
  readonly filterBytes: number;
  readonly lookup: number;
  readonly lines: number;
  readonly keys: number;
  readonly postings: number;
}

/** The times of each segment that an index covers; undefined if unknown. */
export type SegmentTimes = readonly (TimeRange | undefined)[];

/** A segment in a header. Indexes of earlier versions have no times. */
interface StoredSegment extends SealedSegment {
  readonly times?: readonly [from: number, to: number];
}

interface Header {
  readonly logId: string;
  readonly segments: readonly StoredSegment[];
  readonly layout: Layout;
}

/** A line is { first, segment, offset, bytes }, a key { high, low, count, first block, last block, begin, end }. */
export const lineBytes = 16;
export const keyBytes = 24;
export const linesPerBlock = 255;
export const keysPerBlock = 170;
/** At most 1,296 segments share an index; they need at most 220 kB. */
export const headerBytesMax: number = 256 * 1024;

export function indexNameOf({ segments }: Pick<Coverage, "segments">): string {
  return `${slotName(segments[0]?.number ?? 0)}-${slotName(segments.at(-1)?.number ?? 0)}`;
}

/** Seeds the checksum of each block. */
export function stampOf({ logId, segments }: Coverage): number {
  return crc32(JSON.stringify([logId, segments.map(rowOf)]));
}

export function layoutOf(keyCount: number, lineCount: number): Layout {
  const filterBytes = filterBitsOf(keyCount) / 8;
  const lineBlocks = Math.ceil(lineCount / linesPerBlock);
  const keyBlocks = Math.ceil(keyCount / keysPerBlock);
  const lines = Math.ceil((filterBytes + 4 * lineBlocks + 8 * keyBlocks) / payloadBytes);
  const keys = lines + lineBlocks;
  return { keyCount, lineCount, filterBytes, lookup: 0, lines, keys, postings: keys + keyBlocks };
}

/** In whole blocks, padded with zeros. */
export function encodeHeader({ logId, segments }: Coverage, times: SegmentTimes, layout: Layout): Uint8Array {
  const stored = segments.map((segment, index): StoredSegment => {
    const range = times[index];
    return range === undefined ? segment : { ...segment, times: [range.from, range.to] };
  });
  const record = encodeRecord(headerKind, { logId, segments: stored, layout });
  const bytes = new Uint8Array(Math.ceil(record.length / blockBytes) * blockBytes);
  bytes.set(record);
  return bytes;
}

/** Throws for a header that is torn, foreign, of a newer format, or of other bytes of the log. */
export function getLayout(
  record: Uint8Array,
  coverage: Coverage,
  path: string,
): { readonly layout: Layout; readonly times: SegmentTimes } {
  const header = decodeRecord(headerKind, record, path);
  if (stampOf(header) !== stampOf(coverage) || !isSame(header, coverage))
    throw new TypeError("it belongs to another log, or to other bytes");
  const times = header.segments.map(({ times: stored }) => stored && { from: stored[0], to: stored[1] });
  return { layout: header.layout, times };
}

function isSame(a: Coverage, b: Coverage): boolean {
  return JSON.stringify([a.logId, a.segments.map(rowOf)]) === JSON.stringify([b.logId, b.segments.map(rowOf)]);
}

function rowOf({ number, first, last, length, checksum }: SealedSegment): readonly unknown[] {
  return [number, first, last, length, checksum];
}

const headerKind: RecordKind<Header> = {
  kind: "event index",
  decode: (body) => {
    const { logId, segments, layout } = objectOf(body);
    return { logId: textOf(logId), segments: listOf(segments, segmentOf), layout: layoutIn(layout) };
  },
};

function segmentOf(value: unknown): StoredSegment {
  const { number, first, last, length, checksum, times } = objectOf(value);
  return {
    number: countOf(number),
    first: countOf(first),
    last: countOf(last),
    length: countOf(length),
    checksum: textOf(checksum),
    ...(times === undefined ? {} : { times: timesOf(times) }),
  };
}

function timesOf(value: unknown): readonly [from: number, to: number] {
  const [from, to] = listOf(value, (each) => each);
  if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to)) throw new TypeError("not two times");
  return [from as number, to as number];
}

function layoutIn(value: unknown): Layout {
  const { keyCount, lineCount, filterBytes, lookup, lines, keys, postings } = objectOf(value);
  return {
    keyCount: countOf(keyCount),
    lineCount: countOf(lineCount),
    filterBytes: countOf(filterBytes),
    lookup: countOf(lookup),
    lines: countOf(lines),
    keys: countOf(keys),
    postings: countOf(postings),
  };
}
