// The positions of one key in an index file: read block by block from either end, or only around
// one position.
import { payloadBytes } from "./index-layout.ts";

/**
 * The location of a key's positions: from byte `begin` of `firstBlock` to byte `end` (exclusive) of
 * `lastBlock`, counted from the start of the section.
 */
export interface PostingExtent {
  readonly firstBlock: number;
  readonly lastBlock: number;
  readonly begin: number;
  readonly end: number;
}

/** The blocks of the postings section, with verified checksums. */
export interface PostingBlocks {
  readonly read: (block: number) => Promise<Buffer>;
  /** Returns undefined for a block that is not in the cache. */
  readonly find: (block: number) => Buffer | undefined;
}

const none = new Uint32Array(0);

/** A piece is the part of the list that is in one block. Positions count from the first one of the index. */
export class PostingList {
  readonly count: number;
  readonly pieceCount: number;
  readonly #extent: PostingExtent;
  readonly #blocks: PostingBlocks;
  // The piece that `has` searched last, and the range of positions that it covers.
  #piece: Uint32Array = none;
  #from = 0;
  #beyond = 0;

  constructor(count: number, extent: PostingExtent, blocks: PostingBlocks) {
    this.count = count;
    this.pieceCount = extent.lastBlock - extent.firstBlock + 1;
    this.#extent = extent;
    this.#blocks = blocks;
  }

  /** Returns the positions of a piece, ascending. The caller may change the list. */
  async piece(index: number): Promise<Uint32Array> {
    return this.#decode(await this.#block(index), index);
  }

  /** Avoids a promise for a cached block: a merge reads millions of short lists. */
  findPiece(index: number): Uint32Array | undefined {
    const block = this.#blocks.find(this.#extent.firstBlock + index);
    return block && this.#decode(block, index);
  }

  /**
   * Returns the index of the last piece that begins at or before `position`, or of the first piece if there is none. A
   * binary search over blocks.
   */
  async seek(position: number): Promise<number> {
    let low = 0;
    let high = this.pieceCount - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((await this.#firstOf(middle)) <= position) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  async has(position: number): Promise<boolean> {
    if (position < this.#from || position >= this.#beyond) await this.#move(position);
    return includes(this.#piece, position);
  }

  async #move(position: number): Promise<void> {
    const index = await this.seek(position);
    this.#piece = await this.piece(index);
    this.#from = index === 0 ? 0 : (this.#piece[0] as number);
    this.#beyond = index === this.pieceCount - 1 ? Infinity : await this.#firstOf(index + 1);
  }

  async #firstOf(index: number): Promise<number> {
    return varintAt(await this.#block(index), this.#beginOf(index)) - 1;
  }

  #block(index: number): Promise<Buffer> {
    return this.#blocks.read(this.#extent.firstBlock + index);
  }

  #decode(block: Buffer, index: number): Uint32Array {
    const end = index === this.pieceCount - 1 ? this.#extent.end : payloadBytes;
    return decode(block, this.#beginOf(index), end, this.count);
  }

  #beginOf(index: number): number {
    return index === 0 ? this.#extent.begin : 0;
  }
}

function decode(block: Buffer, begin: number, end: number, count: number): Uint32Array {
  // Each position takes at least one byte.
  const positions = new Uint32Array(Math.min(count, end - begin));
  let found = 0;
  let position = -1;
  for (let at = begin; at < end && block[at] !== 0; found++) {
    let value = 0;
    let byte: number;
    let shift = 0;
    do {
      byte = block[at++] as number;
      value |= (byte & 0x7f) << shift;
      shift += 7;
    } while (byte >= 0x80);
    position += value >>> 0;
    positions[found] = position;
  }
  return found === positions.length ? positions : positions.subarray(0, found);
}

function includes(sorted: Uint32Array, value: number): boolean {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return sorted[low] === value;
}

// Varints: whole numbers below 2^32, seven bits per byte, lowest first; all bytes but the last have
// the highest bit set.

export function varintBytesOf(value: number): number {
  return value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : value < 0x1000_0000 ? 4 : 5;
}

export function putVarint(bytes: Uint8Array, at: number, value: number): void {
  let rest = value;
  let index = at;
  for (; rest >= 0x80; rest >>>= 7) bytes[index++] = (rest & 0x7f) | 0x80;
  bytes[index] = rest;
}

function varintAt(bytes: Uint8Array, at: number): number {
  let value = 0;
  for (let index = at, shift = 0; ; index++, shift += 7) {
    const byte = bytes[index] as number;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value >>> 0;
  }
}
