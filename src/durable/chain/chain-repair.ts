// Repairs a rolling chain whose newest epoch is unreadable, while no other process uses it. The
// chain continues in a new epoch from the newest readable state. Its numbers jump, so that no
// number of a lost slot is ever reused.
import { isHoldfastError } from "../../errors.ts";
import { findSlotNumber, slotName } from "../../format/name.ts";
import { getRecord } from "../publish/record-file.ts";
import type { ChainEntry, Chain } from "./chain.ts";
import { slotsMax, type EpochRollover } from "./epoch-rollover.ts";
import { findEpochOfDirectory, findHighestSlot, startOf, type Epoch } from "./epoch.ts";
import type { ChainFiles } from "./slots.ts";

export interface ChainRepair<T> {
  readonly files: ChainFiles<T>;
  /** Each call reads the disk again. */
  readonly openEpochs: () => Chain<Epoch<T>>;
  readonly rollover: EpochRollover<T>;
  readonly initial: T;
  /** Keeps a damaged file where a person can inspect it. */
  readonly moveAside: (path: string) => Promise<unknown>;
}

/** Throws NEWER_FORMAT for a chain that is newer, not damaged. */
export async function repairChain<T>(repair: ChainRepair<T>): Promise<void> {
  const { openEpochs, rollover, moveAside } = repair;
  let lost: number | undefined;
  for (;;) {
    const newest = await openEpochs()
      .last()
      .catch(async (error: unknown) => {
        if (!isHoldfastError(error, "CORRUPT")) throw error;
        return error;
      });
    if (isHoldfastError(newest)) {
      lost = findSlotNumber(newest.path.slice(newest.path.lastIndexOf("/") + 1));
      if (lost === undefined) throw newest;
      await moveAside(newest.path);
    } else if (lost !== undefined) {
      const base = await stateOfLost(repair, lost, newest);
      // The lost record's numbers are unknown. Skip as many as an epoch can have.
      return void (await rollover.nameNext(newest, base, { skip: slotsMax * (lost - (newest?.number ?? 0)) }));
    } else {
      if (newest !== undefined) await rollover.rollOver(newest);
      return;
    }
  }
}

/** Returns the newest readable state of an epoch whose record is lost, or of the epoch before it. */
async function stateOfLost<T>(repair: ChainRepair<T>, lost: number, before?: ChainEntry<Epoch<T>>): Promise<T> {
  const { files, rollover, initial } = repair;
  const { directory, slots } = files;
  const { disk } = files.staging;
  for (const name of await disk.list(directory)) {
    if (findEpochOfDirectory(name) !== lost) continue;
    const highest = (await findHighestSlot(disk, `${directory}/${name}`)) ?? 0;
    const from = await findFirstNumber(files, name, highest);
    // A process that lost the race for this epoch made this directory.
    if (from === undefined) continue;
    const body = { directory: name, bootId: "", synced: true, from, slots: slotsMax, base: initial };
    return (await slots.highestReadable({ ...startOf({ number: lost, id: "", body }), slot: highest })).state;
  }
  return before === undefined ? initial : await rollover.lastReadableState(before);
}

/** Derives the epoch's first number from any readable slot: each slot states its own number. */
async function findFirstNumber<T>(
  { staging, directory, slotKind }: ChainFiles<T>,
  name: string,
  highest: number,
): Promise<number | undefined> {
  for (let slot = highest; slot > 0; slot--)
    try {
      const path = `${directory}/${name}/${slotName(slot)}`;
      return (await getRecord(staging.disk, slotKind, path)).number - slot;
    } catch (error) {
      if (!isHoldfastError(error, "CORRUPT")) throw error;
    }
  return undefined;
}
