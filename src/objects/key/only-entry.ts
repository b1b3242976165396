// Finds the only entry of a key; most listed keys have just one. Opens it by its name, without a
// chain, so that a listing does not evict chains in use from memory.
import type { Disk } from "../../ports/disk.ts";
import { findSlot, isSlotThere, type SlotContent } from "./entry-file.ts";
import type { KeyNames } from "./key-names.ts";

/**
 * Returns the first entry of this incarnation if it was the newest at some moment during this call.
 * Returns undefined if the caller must ask a chain, as always on a share. Throws CORRUPT or
 * NEWER_FORMAT.
 */
export async function findOnlyEntry(
  disk: Disk,
  names: KeyNames,
  incarnation: string,
): Promise<SlotContent | undefined> {
  if (disk.volume.kind !== "local" || names.isFirst(2)) return undefined;
  // The second slot is checked before the first: slots are removed only after the first one.
  if (await isSlotThere(disk, names.slotPath(incarnation, 2))) return undefined;
  return await findSlot(disk, names.slotPath(incarnation, 1));
}
