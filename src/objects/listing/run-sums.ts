// The checksums of a run: one per block of its lines, in a record after the lines. Older releases
// read only the lines and write runs without checksums.
import { crc32 } from "node:zlib";
import { isHoldfastError } from "../../errors.ts";
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import { decodeRecord, encodeRecord, type RecordKind } from "../../format/record.ts";
import type { DiskFile } from "../../ports/disk.ts";
import { damagedRun } from "./index-line.ts";

/** The size of a block: about the number of bytes that a search reads at once. */
const blockBytes = 16 * 1024;
const sumDigits = 8;
/** Longer runs have no checksums: they would not fit into a record. */
const blocksMax = 400_000;
/** Size of the record without the sums. */
const recordBytes = 512;

const sumsKind: RecordKind<{ readonly size: number; readonly block: number; readonly sums: string }> = {
  kind: "run-sums",
  decode: (value) => {
    const { size, block, sums } = objectOf(value);
    return { size: countOf(size), block: countOf(block), sums: textOf(sums) };
  },
};

/** Computes the checksums of a run's lines while they are written. */
export class BlockSums {
  readonly #sums: string[] = [];
  #size = 0;
  #open = 0;

  get size(): number {
    return this.#size;
  }

  update(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const room = blockBytes - (this.#size % blockBytes);
      const piece = bytes.subarray(at, at + room);
      this.#open = crc32(piece, this.#open);
      this.#size += piece.length;
      at += piece.length;
      if (piece.length === room) this.#close();
    }
  }

  /** Returns the encoded record. */
  end(): Uint8Array {
    if (this.#size % blockBytes > 0) this.#close();
    if (this.#sums.length > blocksMax) return new Uint8Array();
    return encodeRecord(sumsKind, { size: this.#size, block: blockBytes, sums: this.#sums.join("") });
  }

  #close(): void {
    this.#sums.push(this.#open.toString(16).padStart(sumDigits, "0"));
    this.#open = 0;
  }
}

export class RunSums {
  readonly #size: number;
  readonly #block: number;
  readonly #sums: string;

  constructor(size: number, block: number, sums: string) {
    this.#size = size;
    this.#block = block;
    this.#sums = sums;
  }

  /** Returns the bounds of the whole blocks that contain the bytes from `start` to `end`. */
  blocksAround(start: number, end: number): readonly [number, number] {
    const block = this.#block;
    return [Math.floor(start / block) * block, Math.min(Math.ceil(end / block) * block, this.#size)];
  }

  /** True if these whole blocks, which begin at `from`, match their checksums. */
  isSound(from: number, bytes: Uint8Array): boolean {
    for (let at = 0; at < bytes.length; at += this.#block) {
      const number = (from + at) / this.#block;
      const sum = Number.parseInt(this.#sums.slice(number * sumDigits, (number + 1) * sumDigits), 16);
      if (crc32(bytes.subarray(at, at + this.#block)) !== sum) return false;
    }
    return true;
  }
}

/**
 * Reads the checksums of a run with `size` bytes of lines. Returns undefined if an older release
 * wrote it. Throws CORRUPT.
 */
export async function findSums(file: DiskFile, path: string, size: number): Promise<RunSums | undefined> {
  const blocks = Math.min(Math.ceil(size / blockBytes), blocksMax);
  const bytes = await file.read(size, blocks * sumDigits + recordBytes);
  if (bytes.length === 0) return undefined;
  try {
    const found = decodeRecord(sumsKind, bytes, path);
    if (found.size === size && found.block > 0) return new RunSums(size, found.block, found.sums);
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT")) throw error;
  }
  throw damagedRun(path, "its checksums cannot be read");
}
