// The checksum that distinguishes a whole record from a torn one, which protects against accidents and
// not against malice; and the hash that identifies a content or a name.
import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";

/** Eight lower-case hex digits of CRC-32 (IEEE). */
export function checksumOf(bytes: Uint8Array | string): string {
  return crc32(bytes).toString(16).padStart(8, "0");
}

/** 64 lower-case hex digits of SHA-256. */
export function sha256Of(data: Uint8Array | string): string {
  return createHash("sha256").update(data).digest("hex");
}
