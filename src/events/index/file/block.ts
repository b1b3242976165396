// The unit in which an index file is read: 4 KiB that carry their own checksum, so that what is read is known to be what was written, there.
import { crc32 } from "node:zlib";

export const blockBytes = 4096;
/** What a block carries beside its checksum. */
export const payloadBytes = 4092;

/** Puts the checksum into a full block. `stamp` and `number` are part of it: a block of another file, or of another place, does not pass. */
export function sealBlock(block: Buffer, number: number, stamp: number): void {
  block.writeUInt32LE(checksumOf(block, number, stamp), payloadBytes);
}

export function isSealed(block: Buffer, number: number, stamp: number): boolean {
  return block.length === blockBytes && block.readUInt32LE(payloadBytes) === checksumOf(block, number, stamp);
}

function checksumOf(block: Buffer, number: number, stamp: number): number {
  return crc32(block.subarray(0, payloadBytes), (stamp + number) >>> 0);
}
