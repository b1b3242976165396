// A Bloom filter: says of most keys that are not in an index that they are not, without reading it.
import type { KeyHash } from "../key-hash.ts";

const bitsPerKey = 10;
const probes = 7;
/** Below 2^31, so that a probe is computed in whole 32-bit numbers. */
const bitsMax = 0x7fff_fff8;

/** How many bits a filter of so many keys has: whole bytes, one at least. */
export function filterBitsOf(keyCount: number): number {
  return Math.min(Math.ceil((keyCount * bitsPerKey + 1) / 8) * 8, bitsMax);
}

export class Filter {
  readonly bytes: Uint8Array;
  readonly #bits: number;

  /** `bytes` are used as they are, not copied. */
  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.#bits = bytes.length * 8;
  }

  add({ high, low }: KeyHash): void {
    for (let probe = 0; probe < probes; probe++) {
      const bit = bitOf(high, low, probe, this.#bits);
      this.bytes[bit >>> 3] = (this.bytes[bit >>> 3] as number) | (1 << (bit & 7));
    }
  }

  /** False is certain; true is wrong once in about 120 times. */
  mayHave({ high, low }: KeyHash): boolean {
    for (let probe = 0; probe < probes; probe++) {
      const bit = bitOf(high, low, probe, this.#bits);
      if (((this.bytes[bit >>> 3] as number) & (1 << (bit & 7))) === 0) return false;
    }
    return true;
  }
}

function bitOf(high: number, low: number, probe: number, bits: number): number {
  return ((high + Math.imul(probe, low | 1)) >>> 1) % bits;
}
