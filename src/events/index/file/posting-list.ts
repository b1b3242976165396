// The positions of one key in an index file, read block by block from either end, or only where somebody asks.
import { payloadBytes } from "./block.ts";
import type { PostingPlace } from "../build/posting-writer.ts";
import { varintAt } from "./varint.ts";

/** The blocks of the section of postings, checked. */
export interface PostingBlocks {
  readonly read: (block: number) => Promise<Buffer>;
  /** One that was read lately. */
  readonly find: (block: number) => Buffer | undefined;
}

const none = new Uint32Array(0);

/** A piece is what one block has of the list. Positions count from the first of the index. */
export class PostingList {
  readonly count: number;
  readonly pieceCount: number;
  readonly #place: PostingPlace;
  readonly #blocks: PostingBlocks;
  // The piece in which `has` looked last, and for which positions it answers.
  #piece: Uint32Array = none;
  #from = 0;
  #beyond = 0;

  constructor(count: number, place: PostingPlace, blocks: PostingBlocks) {
    this.count = count;
    this.pieceCount = place.lastBlock - place.firstBlock + 1;
    this.#place = place;
    this.#blocks = blocks;
  }

  /** Ascending. The caller may change it. */
  async piece(index: number): Promise<Uint32Array> {
    return this.#decode(await this.#block(index), index);
  }

  /** Without a promise, if its block is at hand: a merge asks for millions of short lists that are side by side. */
  findPiece(index: number): Uint32Array | undefined {
    const block = this.#blocks.find(this.#place.firstBlock + index);
    return block && this.#decode(block, index);
  }

  /** The last piece that begins at `position` or before; the first one if none does. Reads a block per halving. */
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
    return this.#blocks.read(this.#place.firstBlock + index);
  }

  #decode(block: Buffer, index: number): Uint32Array {
    const end = index === this.pieceCount - 1 ? this.#place.end : payloadBytes;
    return decode(block, this.#beginOf(index), end, this.count);
  }

  #beginOf(index: number): number {
    return index === 0 ? this.#place.begin : 0;
  }
}

function decode(block: Buffer, begin: number, end: number, count: number): Uint32Array {
  // One byte at least for each.
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
