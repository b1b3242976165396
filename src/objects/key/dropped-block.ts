// Dropping a block of a key that holds no living version.
//
// A record in the block lists the ids of its entries. Then the first slot is removed permanently:
// from then on nothing in the block counts, and readers skip it. The directory and the record stay.
// The directory must stay: without it, a process that slept would begin the block again. From the
// record, such a process learns whether its entry had counted.
import { unlinkIfThere } from "../../durable/publish/directory.ts";
import { putIfAbsent } from "../../durable/publish/publish.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import { listOf, objectOf, textOf } from "../../format/decoding.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { isSlotThere } from "./entry-file.ts";
import type { KeyNames } from "./key-names.ts";
import type { KeyStorage } from "./key-storage.ts";

export const droppedKind: RecordKind<{ readonly ids: readonly string[] }> = {
  kind: "dropped",
  decode: (value) => ({ ids: listOf(objectOf(value).ids, textOf) }),
};

/** A block of one incarnation of a key. */
export interface KeyBlock {
  readonly names: KeyNames;
  readonly incarnation: string;
  readonly block: number;
}

function recordOf({ names, incarnation, block }: KeyBlock): string {
  return `${names.blockPath(incarnation, block)}/dropped`;
}

/**
 * Drops a block. It must be neither block 0 nor the newest one, so it is full. `ids` are the ids of
 * all its entries. Idempotent; several processes may do it at once.
 */
export async function dropBlock(storage: KeyStorage, at: KeyBlock, ids: readonly string[]): Promise<void> {
  const { names, incarnation, block } = at;
  try {
    await putIfAbsent(storage.staging, recordOf(at), encodeRecord(droppedKind, { ids }), { isPermanent: true });
    await unlinkIfThere(storage.staging.disk, names.slotPath(incarnation, names.firstOf(block)));
    // Synced before any other slot is removed: if a power cut restored the first slot, a process
    // could win a number that was already used.
    await storage.sync(names.blockPath(incarnation, block));
  } catch (error) {
    // The key was removed, together with the block.
    if (hasErrno(error, "ENOENT", "ESTALE")) return;
    throw error;
  }
  await emptyBlock(storage.staging.disk, at);
}

/** Removes the remaining slots of a dropped block. */
export async function emptyBlock(disk: Disk, { names, incarnation, block }: KeyBlock): Promise<void> {
  for (let number = names.firstOf(block) + 1; number <= names.lastOf(block); number++)
    await unlinkIfThere(disk, names.slotPath(incarnation, number));
}

export async function isDropped(disk: Disk, { names, incarnation, block }: KeyBlock): Promise<boolean> {
  return block > 0 && !(await isSlotThere(disk, names.slotPath(incarnation, names.firstOf(block))));
}

/** True if the block has a record that it was dropped. */
export async function hasDroppedRecord(disk: Disk, at: KeyBlock): Promise<boolean> {
  return await isSlotThere(disk, recordOf(at));
}

/** True if the last slot is gone. Slots are removed in order, so none is left. */
export async function isEmpty(disk: Disk, { names, incarnation, block }: KeyBlock): Promise<boolean> {
  return !(await isSlotThere(disk, names.slotPath(incarnation, names.lastOf(block))));
}

/**
 * Returns the ids of the entries of a dropped block; undefined if the block was removed with its
 * key.
 */
export async function findDroppedIds(disk: Disk, at: KeyBlock): Promise<readonly string[] | undefined> {
  return (await findRecord(disk, droppedKind, recordOf(at)))?.ids;
}
