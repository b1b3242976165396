// Digests of a body that are made while it passes: MD5 for the ETag, and the checksum that a caller
// asks for.
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import type { ChecksumAlgorithm } from "../model/entry.ts";

interface Digest {
  update(bytes: Uint8Array): void;
  /** Base64, as S3 has it. */
  value(): string;
}

/** What is known about a body when all of it has passed. */
export class BodyDigests {
  readonly #md5 = createHash("md5");
  readonly #checksum: Digest | undefined;
  #size = 0;

  constructor(algorithm: ChecksumAlgorithm | undefined) {
    this.#checksum = algorithm === undefined ? undefined : newDigest(algorithm);
  }

  update(bytes: Uint8Array): void {
    this.#md5.update(bytes);
    this.#checksum?.update(bytes);
    this.#size += bytes.length;
  }

  get size(): number {
    return this.#size;
  }

  /** Called once, at the end. `md5` is in hex. */
  end(): { readonly md5: string; readonly checksum: string | undefined } {
    return { md5: this.#md5.digest("hex"), checksum: this.#checksum?.value() };
  }
}

function newDigest(algorithm: ChecksumAlgorithm): Digest {
  if (algorithm === "SHA1" || algorithm === "SHA256") {
    const hash = createHash(algorithm.toLowerCase());
    return { update: (bytes) => void hash.update(bytes), value: () => hash.digest("base64") };
  }
  if (algorithm === "CRC64NVME") return new Crc64();
  let crc = algorithm === "CRC32" ? 0 : 0xffffffff;
  const isPlain = algorithm === "CRC32";
  return {
    update: (bytes) => {
      crc = isPlain ? crc32(bytes, crc) : crc32c(bytes, crc);
    },
    value: () => {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE((isPlain ? crc : ~crc) >>> 0);
      return bytes.toString("base64");
    },
  };
}

let castagnoli: Uint32Array | undefined;

function crc32c(bytes: Uint8Array, before: number): number {
  castagnoli ??= Uint32Array.from({ length: 256 }, (_, byte) => {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
    return crc >>> 0;
  });
  let crc = before;
  for (const byte of bytes) crc = (castagnoli[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  return crc >>> 0;
}

/** The polynomial 0x9a6c9329ac4bc9b5, reflected, in two halves: numbers have 53 bits. */
class Crc64 implements Digest {
  static #tableHigh: Uint32Array | undefined;
  static #tableLow = new Uint32Array(256);
  #high = 0xffffffff;
  #low = 0xffffffff;

  update(bytes: Uint8Array): void {
    const tableHigh = (Crc64.#tableHigh ??= Crc64.#makeTable());
    const tableLow = Crc64.#tableLow;
    let high = this.#high;
    let low = this.#low;
    for (const byte of bytes) {
      const index = (low ^ byte) & 0xff;
      low = ((low >>> 8) | (high << 24)) ^ (tableLow[index] ?? 0);
      high = (high >>> 8) ^ (tableHigh[index] ?? 0);
    }
    this.#high = high;
    this.#low = low;
  }

  value(): string {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32BE(~this.#high >>> 0, 0);
    bytes.writeUInt32BE(~this.#low >>> 0, 4);
    return bytes.toString("base64");
  }

  static #makeTable(): Uint32Array {
    const polynomial = 0x9a6c9329ac4bc9b5n;
    const table = new Uint32Array(256);
    for (let byte = 0; byte < 256; byte++) {
      let crc = BigInt(byte);
      for (let bit = 0; bit < 8; bit++) crc = crc & 1n ? (crc >> 1n) ^ polynomial : crc >> 1n;
      table[byte] = Number(crc >> 32n);
      Crc64.#tableLow[byte] = Number(crc & 0xffffffffn);
    }
    return table;
  }
}
