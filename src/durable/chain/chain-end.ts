// The end of a rolling chain, as far as this process knows it, and how the process finds the newest
// one. It also serves a process that can write nothing: then the newest state that can be read is
// the end.
import { holdfastError } from "../../errors.ts";
import { isUnwritable } from "../../ports/disk-error.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Chain } from "./chain.ts";
import { findHighestSlot, type Epoch, type View } from "./epoch.ts";
import type { EpochRollover } from "./epoch-rollover.ts";
import type { Slots } from "./slots.ts";

const attemptsMax = 1000;

export interface ChainEndParts<T> {
  readonly disk: Disk;
  readonly directory: string;
  readonly epochs: Chain<Epoch<T>>;
  readonly slots: Slots<T>;
  readonly rollover: EpochRollover<T>;
}

export class ChainEnd<T> {
  readonly #parts: ChainEndParts<T>;
  /** Undefined when this process has to look for the newest epoch again. */
  known: View<T> | undefined;
  /** False as long as this process could not write when it tried: it only reads, until it can. */
  canWrite = false;

  constructor(parts: ChainEndParts<T>) {
    this.#parts = parts;
  }

  /** The known end, or the end of the newest epoch. */
  async get(): Promise<View<T>> {
    return this.known ?? (await this.#enterNewestEpoch());
  }

  /**
   * The end of the chain as far as it can be seen, from `view` on; undefined when its epoch is
   * gone.
   */
  async findAfter(view: View<T>): Promise<View<T> | undefined> {
    const { slots, epochs, rollover } = this.#parts;
    const newest = await slots.findEnd(view);
    if (newest === undefined || newest.slot < view.epoch.body.slots) return newest;
    // Full: the next epoch may have begun already.
    const epoch = await epochs.last();
    if (epoch === undefined || epoch.number <= view.epoch.number) return newest;
    if (rollover.isDue(epoch)) return undefined;
    return await this.findAfter(startOf(epoch));
  }

  /**
   * The newest end after another process has won the slot of `lost`, whose state never counted.
   * Undefined when the epoch is gone.
   */
  async findAfterLosing(lost: View<T>): Promise<View<T> | undefined> {
    if (this.#parts.disk.volume.kind === "local") {
      const before = { ...lost, slot: lost.slot - 1 };
      const newest = await this.findAfter(before);
      return newest === before ? undefined : newest;
    }
    // From that slot on: a listing of a share may not have it yet.
    const found = await this.#parts.slots.findAt(lost, lost.slot);
    return found === undefined ? undefined : await this.findAfter(found);
  }

  /** Names the epoch after a full one. */
  async rollOver(view: View<T>): Promise<void> {
    const epoch = await this.#parts.rollover.nameNext(view.epoch, view.state);
    this.known = epoch === undefined ? undefined : startOf(epoch);
  }

  /**
   * Leaves an epoch that is not open: it was collected long ago, or a process that may be dead has
   * begun to roll it over. False when this process would have to name the next epoch and can write
   * nothing: then this epoch is still the newest.
   */
  async leave({ epoch }: Pick<View<T>, "epoch">): Promise<boolean> {
    this.known = undefined;
    const { epochs, rollover } = this.#parts;
    try {
      if (!epoch.body.synced && (await epochs.last())?.number === epoch.number) await rollover.rollOver(epoch);
      return true;
    } catch (error) {
      if (this.canWrite || !isUnwritable(error)) throw error;
      return false;
    }
  }

  async #enterNewestEpoch(): Promise<View<T>> {
    const { disk, epochs, slots, rollover } = this.#parts;
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const epoch = await epochs.last();
      if (epoch === undefined) continue;
      if (rollover.isDue(epoch)) {
        await rollover.rollOver(epoch);
        continue;
      }
      const view = await slots.findEndByListing(startOf(epoch));
      if (view !== undefined) return (this.known = view);
      const highest = await findHighestSlot(disk, slots.pathOf({ epoch }));
      // Gone means collected: a newer epoch exists, and the next look finds it.
      if (highest === undefined) continue;
      if (!(await this.leave({ epoch }))) return await slots.highestReadable({ ...startOf(epoch), slot: highest });
    }
    throw damagedEpochs(this.#parts.directory, "is missing");
  }
}

function startOf<T>(epoch: View<T>["epoch"]): View<T> {
  return { epoch, slot: 0, state: epoch.body.base };
}

export function damagedEpochs(directory: string, what: string): Error {
  const path = `${directory}/epochs`;
  const message = `${path}: the directory of the newest epoch ${what}. Restore it from a backup.`;
  return holdfastError("CORRUPT", message, { path });
}
