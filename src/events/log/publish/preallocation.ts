// Room: spaces behind the lines of a segment on a local disk, for the lines that come next. Lines
// written over them do not change the size of the file, so that a sync need not commit the journal
// of the file system. No reader sees them: they are beyond the tip, and no line begins with a
// space.
import type { DiskFile } from "../../../ports/disk.ts";

export const space: number = 0x20;
const newline = 0x0a;
/**
 * As much as the segment already has, within these limits: a small log stays small, a large one
 * seldom grows.
 */
const roomBytesMin = 4 * 1024;
const roomBytesMax = 256 * 1024;

/**
 * `lines` with room behind them, to be written at `offset`. No room beyond `fileBytesMax`, where
 * the next segment begins.
 */
export function withRoom(lines: Uint8Array, offset: number, fileBytesMax: number): Uint8Array {
  const end = offset + lines.length;
  const room = Math.min(Math.max(end, roomBytesMin), roomBytesMax, Math.max(fileBytesMax - end, 0));
  const bytes = Buffer.alloc(lines.length + room, space);
  bytes.set(lines);
  return bytes;
}

export function isRoom(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === space);
}

/** Whether a newline stands anywhere behind `from`. */
export async function hasLineEnd(file: DiskFile, from: number): Promise<boolean> {
  const { size } = await file.stat();
  for (let offset = from; offset < size; offset += roomBytesMax)
    if ((await file.read(offset, Math.min(roomBytesMax, size - offset))).includes(newline)) return true;
  return false;
}

/** Whether nothing but room stands behind `from`. */
export async function isRoomFrom(file: DiskFile, from: number): Promise<boolean> {
  const { size } = await file.stat();
  for (let offset = from; offset < size; offset += roomBytesMax)
    if (!isRoom(await file.read(offset, Math.min(roomBytesMax, size - offset)))) return false;
  return true;
}
