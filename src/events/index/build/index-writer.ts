// Writes an index: header, lookup, lines, keys, postings. Keeps only the filter in memory.
import { BlockStream, type IndexTarget } from "./block-stream.ts";
import { Filter } from "../file/filter.ts";
import {
  encodeHeader,
  keyBytes,
  keysPerBlock,
  layoutOf,
  lineBytes,
  linesPerBlock,
  payloadBytes,
  stampOf,
  type Coverage,
  type SegmentTimes,
  type StoredLine,
  type WriteAt,
} from "../file/index-layout.ts";
import type { PostingExtent } from "../file/posting-list.ts";
import { PostingWriter } from "./posting-writer.ts";

export interface StoredKey {
  readonly high: number;
  readonly low: number;
  readonly count: number;
  /** Ascending within a list and across lists. */
  readonly positions: readonly number[] | AsyncIterable<Uint32Array>;
}

export interface IndexContent {
  /** Times of each segment, in order. */
  readonly times: SegmentTimes;
  readonly keyCount: number;
  readonly lineCount: number;
  /** In the order of positions, in lists of any length. */
  readonly lines: () => AsyncIterable<Iterable<StoredLine>>;
  /** In the order of hashes. */
  readonly keys: () => AsyncIterable<Iterable<StoredKey>>;
}

export async function writeIndex(coverage: Coverage, content: IndexContent, write: WriteAt): Promise<void> {
  const layout = layoutOf(content.keyCount, content.lineCount);
  const header = encodeHeader(coverage, content.times, layout);
  const target: IndexTarget = { write, headerBytes: header.length, stamp: stampOf(coverage) };
  await write(0, header);
  const lineFences = await writeLines(content, new BlockStream(target, layout.lines));
  const filter = new Filter(new Uint8Array(layout.filterBytes));
  const streams = { keys: new BlockStream(target, layout.keys), postings: new BlockStream(target, layout.postings) };
  const keyFences = await writeKeys(content, streams, filter);
  const lookup = Buffer.concat([filter.bytes, uint32s(lineFences), uint32s(keyFences)]);
  await writeBytes(lookup, new BlockStream(target, layout.lookup));
}

/** Returns the first position of each block. */
async function writeLines(content: IndexContent, stream: BlockStream): Promise<number[]> {
  const fences: number[] = [];
  let count = 0;
  for await (const lines of content.lines()) {
    for (const { first, segment, offset, bytes } of lines) {
      if (count++ % linesPerBlock === 0) fences.push(first);
      const { block, at } = stream.take(lineBytes);
      block.writeUInt32LE(first, at);
      block.writeUInt32LE(segment, at + 4);
      block.writeUInt32LE(offset, at + 8);
      block.writeUInt32LE(bytes, at + 12);
    }
    await stream.drain();
  }
  await stream.end();
  return fences;
}

/** Returns the hash of the first key of each block. */
async function writeKeys(
  content: IndexContent,
  { keys: stream, postings }: { readonly keys: BlockStream; readonly postings: BlockStream },
  filter: Filter,
): Promise<number[]> {
  const fences: number[] = [];
  const writer = new PostingWriter(postings);
  let count = 0;
  for await (const keys of content.keys()) {
    for (const key of keys) {
      if (count++ % keysPerBlock === 0) fences.push(key.high, key.low);
      filter.add(key);
      // Most keys have few positions: those are written without a promise.
      if (Symbol.asyncIterator in key.positions) await writePositions(key.positions, writer, postings);
      else writer.add(key.positions);
      writeKey(key, writer.finish(), stream);
    }
    await stream.drain();
    await postings.drain();
  }
  await stream.end();
  await postings.end();
  return fences;
}

async function writePositions(
  positions: AsyncIterable<Uint32Array>,
  writer: PostingWriter,
  stream: BlockStream,
): Promise<void> {
  for await (const list of positions) {
    writer.add(list);
    await stream.drain();
  }
}

function writeKey({ high, low, count }: StoredKey, extent: PostingExtent, stream: BlockStream): void {
  const { block, at } = stream.take(keyBytes);
  block.writeUInt32LE(high, at);
  block.writeUInt32LE(low, at + 4);
  block.writeUInt32LE(count, at + 8);
  block.writeUInt32LE(extent.firstBlock, at + 12);
  block.writeUInt32LE(extent.lastBlock, at + 16);
  block.writeUInt16LE(extent.begin, at + 20);
  block.writeUInt16LE(extent.end, at + 22);
}

async function writeBytes(bytes: Buffer, stream: BlockStream): Promise<void> {
  for (let done = 0; done < bytes.length; done += payloadBytes) {
    const part = bytes.subarray(done, done + payloadBytes);
    const { block, at } = stream.take(part.length);
    part.copy(block, at);
    await stream.drain();
  }
  await stream.end();
}

function uint32s(values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, index) => bytes.writeUInt32LE(value, index * 4));
  return bytes;
}
