// Crc: a reflected cyclic redundancy check of 32 or 64 bits, as CRC32C and CRC64NVME are, over a body
// that passes in pieces.
//
// Eight bytes are taken at a time, by a table for each of their places (slicing by eight): a body of a
// megabyte passes on the event loop, and a byte at a time took ten times as long. A value is kept in two
// halves of 32 bits: numbers have 53.

const places = 8;

interface Tables {
  readonly low: Int32Array;
  readonly high: Int32Array;
}

const known = new Map<bigint, Tables>();

export class Crc {
  readonly #bits: 32 | 64;
  readonly #tables: Tables;
  #low = -1;
  #high: number;

  /** `polynomial` is reflected: its lowest term is the highest bit. */
  constructor(bits: 32 | 64, polynomial: bigint) {
    this.#bits = bits;
    this.#high = bits === 64 ? -1 : 0;
    this.#tables = tablesOf(polynomial);
  }

  update(bytes: Uint8Array): void {
    const { low, high } = this.#tables;
    let l = this.#low;
    let h = this.#high;
    let at = 0;
    for (const end = bytes.length - places; at <= end; at += places) {
      const x = l ^ wordAt(bytes, at);
      const y = h ^ wordAt(bytes, at + 4);
      // The first byte has seven more behind it: its table is the last one.
      const a = 0x700 | (x & 0xff);
      const b = 0x600 | ((x >>> 8) & 0xff);
      const c = 0x500 | ((x >>> 16) & 0xff);
      const d = 0x400 | (x >>> 24);
      const e = 0x300 | (y & 0xff);
      const f = 0x200 | ((y >>> 8) & 0xff);
      const g = 0x100 | ((y >>> 16) & 0xff);
      const i = y >>> 24;
      l = low[a]! ^ low[b]! ^ low[c]! ^ low[d]! ^ low[e]! ^ low[f]! ^ low[g]! ^ low[i]!;
      h = high[a]! ^ high[b]! ^ high[c]! ^ high[d]! ^ high[e]! ^ high[f]! ^ high[g]! ^ high[i]!;
    }
    for (; at < bytes.length; at++) {
      const index = (l ^ bytes[at]!) & 0xff;
      l = ((l >>> 8) | (h << 24)) ^ low[index]!;
      h = (h >>> 8) ^ high[index]!;
    }
    this.#low = l;
    this.#high = h;
  }

  /** Base64 of its bytes, the highest first, as S3 has it. */
  value(): string {
    const bytes = Buffer.alloc(8);
    bytes.writeInt32BE(~this.#high, 0);
    bytes.writeInt32BE(~this.#low, 4);
    return bytes.toString("base64", 8 - this.#bits / 8);
  }
}

function wordAt(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
}

/** What a byte makes of a value, by its place; 32 KiB at most, made once. */
function tablesOf(polynomial: bigint): Tables {
  const found = known.get(polynomial);
  if (found !== undefined) return found;
  const low = new Int32Array(places * 256);
  const high = new Int32Array(places * 256);
  for (let byte = 0; byte < 256; byte++) {
    let value = BigInt(byte);
    for (let bit = 0; bit < 8; bit++) value = value & 1n ? (value >> 1n) ^ polynomial : value >> 1n;
    low[byte] = Number(value & 0xffffffffn);
    high[byte] = Number(value >> 32n);
  }
  // One byte further on than in the table before.
  for (let at = 256; at < places * 256; at++) {
    const [l, h] = [low[at - 256]!, high[at - 256]!];
    low[at] = ((l >>> 8) | (h << 24)) ^ low[l & 0xff]!;
    high[at] = (h >>> 8) ^ high[l & 0xff]!;
  }
  const tables = { low, high };
  known.set(polynomial, tables);
  return tables;
}
