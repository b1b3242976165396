// The entry of a key that has one only, as most keys of a listing have: found by its name, without a
// chain that would be remembered in the place of one that is in use.
import type { Disk } from "../../ports/disk.ts";
import { findSlot, isSlotThere, type SlotContent } from "./entry-file.ts";
import type { KeyNames } from "./key-names.ts";

/**
 * The first entry of this life, if it was the newest one at a moment during this call; undefined when
 * a chain has to tell, as on every share. CORRUPT, NEWER_FORMAT.
 */
export async function findOnlyEntry(
  disk: Disk,
  names: KeyNames,
  incarnation: string,
): Promise<SlotContent | undefined> {
  if (disk.volume.kind !== "local" || names.isFirst(2)) return undefined;
  // The second slot before the first: slots go only when the first one is gone.
  if (await isSlotThere(disk, names.slotPath(incarnation, 2))) return undefined;
  return await findSlot(disk, names.slotPath(incarnation, 1));
}
