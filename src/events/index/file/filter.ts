// A Bloom filter: rules out most absent keys without a read.
import type { KeyHash } from "../keys/key-hash.ts";

/** A reader takes the size from the header: older builds made filters of 10 bits for each key. */
const bitsPerKey = 16;
const probes = 7;
/** Below 2^31, so that a probe fits 32-bit arithmetic. */
const bitsMax = 0x7fff_fff8;

/** Returns the size of a filter for this many keys: whole bytes, at least one. */
export function filterBitsOf(keyCount: number): number {
  return Math.min(Math.ceil((keyCount * bitsPerKey + 1) / 8) * 8, bitsMax);
}

export class Filter {
  readonly bytes: Uint8Array;
  readonly #bits: number;

  /** Uses `bytes` itself, not a copy. */
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

  /** False is certain; true is wrong for about 1 in 1,400 absent keys. */
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
