// One index of sealed segments: immutable, read by blocks. Damage makes it unusable, never empty.
import { IndexBlocks, type IndexSource } from "./index-blocks.ts";
import {
  keyBytes,
  keysPerBlock,
  lineBytes,
  linesPerBlock,
  type Coverage,
  type SegmentTimes,
  type StoredLine,
} from "./index-layout.ts";
import type { LineAddress } from "../keys/indexed-line.ts";
import type { HashedItem, KeyHash } from "../keys/key-hash.ts";
import { lastOf, Lookup } from "./lookup.ts";
import { PostingList, type PostingBlocks } from "./posting-list.ts";

/** A block of keys that is read in place, without objects: a merge walks millions of keys. */
export interface KeyBlock {
  readonly length: number;
  readonly highOf: (index: number) => number;
  readonly lowOf: (index: number) => number;
  readonly listOf: (index: number) => PostingList;
}

export class SealedIndex {
  readonly coverage: Coverage;
  /** Positions of the first and last event; `last` is `first - 1` if there is none. */
  readonly first: number;
  readonly last: number;
  readonly #blocks: IndexBlocks;
  readonly #postings: PostingBlocks;
  #lookup: Lookup | undefined;
  #loading: Promise<Lookup> | undefined;

  /**
   * Reads only the header. Throws UnusableIndex unless it covers exactly `coverage`; every later
   * call may also throw it.
   */
  static async open(source: IndexSource, coverage: Coverage): Promise<SealedIndex> {
    return new SealedIndex(await IndexBlocks.open(source, coverage), coverage);
  }

  private constructor(blocks: IndexBlocks, coverage: Coverage) {
    this.coverage = coverage;
    this.first = coverage.segments[0]?.first ?? 1;
    this.last = coverage.segments.at(-1)?.last ?? 0;
    this.#blocks = blocks;
    const { postings } = blocks.layout;
    this.#postings = {
      read: (number) => blocks.block(postings + number),
      find: (number) => blocks.findKept(postings + number),
    };
  }

  get name(): string {
    return this.#blocks.name;
  }

  /** Times of each segment of `coverage`, in order. */
  get times(): SegmentTimes {
    return this.#blocks.times;
  }

  get keyCount(): number {
    return this.#blocks.layout.keyCount;
  }

  get lineCount(): number {
    return this.#blocks.layout.lineCount;
  }

  /** True if the filter in memory excludes a match. Reads nothing. */
  excludes(items: readonly HashedItem[]): boolean {
    const filter = this.#lookup?.filter;
    if (filter === undefined) return false;
    return items.every((item) => item.some((clause) => !clause.some((hash) => filter.mayHave(hash))));
  }

  /** Loads the filter; before that, `excludes` is always false. */
  async load(): Promise<void> {
    await this.#load();
  }

  /** Checks the filter, then reads one block. */
  async findList(hash: KeyHash): Promise<PostingList | undefined> {
    const lookup = await this.#load();
    if (!lookup.filter.mayHave(hash)) return undefined;
    const number = lookup.keyBlockOf(hash);
    if (number < 0) return undefined;
    const block = await this.#blocks.block(this.#blocks.layout.keys + number);
    const keyAt = (index: number): KeyHash => hashAt(block, index * keyBytes);
    const index = lastOf(countIn(number, keysPerBlock, this.keyCount), (each) => {
      const { high, low } = keyAt(each);
      return high < hash.high || (high === hash.high && low <= hash.low);
    });
    const { high, low } = keyAt(index);
    return high === hash.high && low === hash.low ? this.#listAt(block, index * keyBytes) : undefined;
  }

  /** Throws a RangeError for a position that is not in this index. */
  async getLine(position: number): Promise<LineAddress> {
    if (!(position >= this.first && position <= this.last))
      throw new RangeError(`Position ${position} is not between ${this.first} and ${this.last}.`);
    const lookup = await this.#load();
    const number = lookup.lineBlockOf(position - this.first);
    const block = await this.#blocks.block(this.#blocks.layout.lines + number);
    const index = lastOf(
      countIn(number, linesPerBlock, this.lineCount),
      (each) => block.readUInt32LE(each * lineBytes) <= position - this.first,
    );
    const { first, segment, offset, bytes } = lineAt(block, index * lineBytes);
    const { number: segmentNumber } = this.coverage.segments[segment] as { number: number };
    return { segment: segmentNumber, offset, bytes, first: this.first + first };
  }

  /** Yields all lines, by blocks. */
  async *lines(): AsyncGenerator<StoredLine[], void> {
    let number = 0;
    const { lines, keys } = this.#blocks.layout;
    for await (const block of this.#blocks.run(lines, keys - lines))
      yield Array.from({ length: countIn(number++, linesPerBlock, this.lineCount) }, (_, index) =>
        lineAt(block, index * lineBytes),
      );
  }

  /** Yields all keys in the order of their hashes, by blocks. */
  async *keys(): AsyncGenerator<KeyBlock, void> {
    let number = 0;
    const { keys, postings } = this.#blocks.layout;
    for await (const block of this.#blocks.run(keys, postings - keys))
      yield {
        length: countIn(number++, keysPerBlock, this.keyCount),
        highOf: (index) => block.readUInt32LE(index * keyBytes),
        lowOf: (index) => block.readUInt32LE(index * keyBytes + 4),
        listOf: (index) => this.#listAt(block, index * keyBytes),
      };
  }

  async close(): Promise<void> {
    await this.#blocks.close();
  }

  async #load(): Promise<Lookup> {
    if (this.#lookup !== undefined) return this.#lookup;
    this.#loading ??= Lookup.load(this.#blocks);
    try {
      return (this.#lookup = await this.#loading);
    } finally {
      this.#loading = undefined;
    }
  }

  #listAt(block: Buffer, at: number): PostingList {
    const extent = {
      firstBlock: block.readUInt32LE(at + 12),
      lastBlock: block.readUInt32LE(at + 16),
      begin: block.readUInt16LE(at + 20),
      end: block.readUInt16LE(at + 22),
    };
    return new PostingList(block.readUInt32LE(at + 8), extent, this.#postings);
  }
}

/** Returns how many of `total` entries are in block `number`. */
function countIn(number: number, perBlock: number, total: number): number {
  return Math.min(perBlock, total - number * perBlock);
}

function hashAt(block: Buffer, at: number): KeyHash {
  return { high: block.readUInt32LE(at), low: block.readUInt32LE(at + 4) };
}

function lineAt(block: Buffer, at: number): StoredLine {
  return {
    first: block.readUInt32LE(at),
    segment: block.readUInt32LE(at + 4),
    offset: block.readUInt32LE(at + 8),
    bytes: block.readUInt32LE(at + 12),
  };
}
