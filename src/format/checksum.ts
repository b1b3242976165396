// The checksum that distinguishes a whole record from a torn one. It protects against accidents,
// not against malice.
import { crc32 } from "node:zlib";

/** Eight lower-case hex digits of CRC-32 (IEEE). */
export function checksumOf(bytes: Uint8Array | string): string {
  return crc32(bytes).toString(16).padStart(8, "0");
}
