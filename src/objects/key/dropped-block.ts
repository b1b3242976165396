// Dropping a block of a key in which no version lives.
//
// A record in the block says which entries it had. Then its first slot goes, for good: from then on
// nothing in the block counts, and a reader passes over it. The directory stays, with that record in
// it: otherwise a process that slept would begin the block anew. By the record such a process learns
// whether its entry had counted.
import { unlinkIfThere } from "../../durable/publish/directory.ts";
import { putIfAbsent } from "../../durable/publish/publish.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import { listOf, objectOf, textOf } from "../../format/decoding.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import { isSlotThere } from "./entry-file.ts";
import type { KeyNames } from "./key-names.ts";
import type { KeyPlace } from "./key-place.ts";

const droppedKind: RecordKind<{ readonly ids: readonly string[] }> = {
  kind: "dropped",
  decode: (value) => ({ ids: listOf(objectOf(value).ids, textOf) }),
};

/** A block of one incarnation of a key. */
export interface BlockPlace {
  readonly names: KeyNames;
  readonly incarnation: string;
  readonly block: number;
}

function recordOf({ names, incarnation, block }: BlockPlace): string {
  return `${names.blockPath(incarnation, block)}/dropped`;
}

/**
 * Of a block from 1 on that is not the newest one, and therefore full; `ids` are those of all its
 * entries. May be done again, and by several processes.
 */
export async function dropBlock(place: KeyPlace, at: BlockPlace, ids: readonly string[]): Promise<void> {
  const { names, incarnation, block } = at;
  try {
    await putIfAbsent(place.staging, recordOf(at), encodeRecord(droppedKind, { ids }), { isPermanent: true });
    await unlinkIfThere(place.staging.disk, names.slotPath(incarnation, names.firstOf(block)));
    // Before any other slot goes: a first slot that came back after a power cut would let a process
    // win numbers that were vacated.
    await place.sync(names.blockPath(incarnation, block));
  } catch (error) {
    // The key is gone, and the block with it.
    if (hasErrno(error, "ENOENT", "ESTALE")) return;
    throw error;
  }
  await emptyBlock(place.staging.disk, at);
}

/** Removes what is left of a block that was dropped. */
export async function emptyBlock(disk: Disk, { names, incarnation, block }: BlockPlace): Promise<void> {
  for (let number = names.firstOf(block) + 1; number <= names.lastOf(block); number++)
    await unlinkIfThere(disk, names.slotPath(incarnation, number));
}

export async function isDropped(disk: Disk, { names, incarnation, block }: BlockPlace): Promise<boolean> {
  return block > 0 && !(await isSlotThere(disk, names.slotPath(incarnation, names.firstOf(block))));
}

/** Whether nothing is left to remove: the slot that goes last is gone. */
export async function isEmpty(disk: Disk, { names, incarnation, block }: BlockPlace): Promise<boolean> {
  return !(await isSlotThere(disk, names.slotPath(incarnation, names.lastOf(block))));
}

/** The ids of the entries that a dropped block had; undefined when it is gone with its key. */
export async function findDroppedIds(disk: Disk, at: BlockPlace): Promise<readonly string[] | undefined> {
  return (await findRecord(disk, droppedKind, recordOf(at)))?.ids;
}
