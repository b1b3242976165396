// Recovers the name of a key whose newest entry cannot be read.
import { findSlotOrDamage } from "../key/entry-file.ts";
import type { OpenKey } from "../key/key-chains.ts";
import type { KeyHead } from "../key/key-head.ts";
import type { OpenBucket } from "./open-bucket.ts";

/**
 * Returns the name from the newest entry in which it is legible, or undefined. The key's directory,
 * whose name has a hash of the key, confirms it.
 */
export async function findKeyName(
  { layout, storage }: OpenBucket,
  { chain }: Pick<OpenKey, "chain">,
  { entry, incarnation, number }: KeyHead,
): Promise<string | undefined> {
  if (entry.kind !== "damaged") return entry.key;
  const { names } = chain;
  for (let each = number; each > 0; each--) {
    const slot = await findSlotOrDamage(storage.disk, names.slotPath(incarnation, each));
    const key = slot?.entry.kind === "damaged" ? slot.entry.legible.key : slot?.entry.key;
    if (key !== undefined && layout.key(key) === names.directory) return key;
  }
  return undefined;
}
