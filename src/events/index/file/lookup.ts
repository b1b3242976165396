// The part of an index that stays in memory after the first query: the filter of its keys, and the
// first entry of each block of lines and of keys.
import { Filter } from "./filter.ts";
import type { IndexBlocks } from "./index-blocks.ts";
import { keysPerBlock, linesPerBlock, payloadBytes } from "./index-layout.ts";
import type { KeyHash } from "../keys/key-hash.ts";

export class Lookup {
  readonly filter: Filter;
  readonly #lineFences: Uint32Array;
  readonly #keyFences: Uint32Array;

  static async load(blocks: IndexBlocks): Promise<Lookup> {
    const { filterBytes, lookup, lineCount, keyCount } = blocks.layout;
    const lineBytes = Math.ceil(lineCount / linesPerBlock) * 4;
    const keyBytes = Math.ceil(keyCount / keysPerBlock) * 8;
    const bytes = Buffer.allocUnsafe(filterBytes + lineBytes + keyBytes);
    let done = 0;
    for await (const block of blocks.run(lookup, Math.ceil(bytes.length / payloadBytes)))
      done += block.copy(bytes, done, 0, Math.min(payloadBytes, bytes.length - done));
    const lineStart = filterBytes;
    const keyStart = lineStart + lineBytes;
    return new Lookup(
      new Filter(Uint8Array.from(bytes.subarray(0, lineStart))),
      uint32sOf(bytes.subarray(lineStart, keyStart)),
      uint32sOf(bytes.subarray(keyStart)),
    );
  }

  private constructor(filter: Filter, lineFences: Uint32Array, keyFences: Uint32Array) {
    this.filter = filter;
    this.#lineFences = lineFences;
    this.#keyFences = keyFences;
  }

  /** Returns the number of the block of lines that can contain this position; -1 if all begin after it. */
  lineBlockOf(position: number): number {
    return lastOf(this.#lineFences.length, (block) => (this.#lineFences[block] as number) <= position);
  }

  /** Returns the number of the block of keys that can contain this one; -1 if all begin after it. */
  keyBlockOf({ high, low }: KeyHash): number {
    const fences = this.#keyFences;
    return lastOf(fences.length / 2, (block) => {
      const fence = fences[block * 2] as number;
      return fence < high || (fence === high && (fences[block * 2 + 1] as number) <= low);
    });
  }
}

/**
 * Binary search: returns the last index below `count` for which `isTrue` holds, or -1. `isTrue` must hold up to some
 * index and for none after it.
 */
export function lastOf(count: number, isTrue: (index: number) => boolean): number {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isTrue(middle)) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function uint32sOf(bytes: Buffer): Uint32Array {
  return Uint32Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readUInt32LE(index * 4));
}
