// The checksums of S3 over bytes that arrive in pieces: those that Node provides, and two CRCs that it lacks.
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import { Crc } from "./crc.ts";

/** A checksum that is computed chunk by chunk. */
export interface RunningChecksum {
  /** Adds bytes to the checksum. */
  update(bytes: Uint8Array): void;
  /** Returns the checksum in Base64, as S3 does. Call it once, at the end. */
  value(): string;
}

/** Starts one of the checksums of S3. */
export function startChecksum(algorithm: "CRC32" | "CRC32C" | "CRC64NVME" | "SHA1" | "SHA256"): RunningChecksum {
  switch (algorithm) {
    case "CRC32":
      return new Crc32();
    case "CRC32C":
      return new Crc(32, 0x82f63b78n);
    case "CRC64NVME":
      return new Crc(64, 0x9a6c9329ac4bc9b5n);
    case "SHA1":
    case "SHA256": {
      const hash = createHash(algorithm.toLowerCase());
      return { update: (bytes) => void hash.update(bytes), value: () => hash.digest("base64") };
    }
  }
}

class Crc32 implements RunningChecksum {
  #value = 0;

  update(bytes: Uint8Array): void {
    this.#value = crc32(bytes, this.#value);
  }

  value(): string {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(this.#value);
    return bytes.toString("base64");
  }
}
