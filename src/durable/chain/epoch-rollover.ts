// EpochRollover: names the next epoch of a rolling chain, when the last one is full or when its
// slots no longer count. Slots that are not synced count only until the power fails. A process that
// cannot rule that out (another boot id), or that survives it (a share), removes the `open` file of
// the epoch and goes on in the next one. A process that won a slot saw `open` after its link, so
// its slot is found by the reading that follows, even if that process still runs. All later slots
// lose.
import { randomName } from "../../format/id.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { diskError, hasErrno } from "../../ports/disk-error.ts";
import type { Chain, ChainEntry } from "./chain.ts";
import { findHighestSlot, makeEpochDirectory, sealEpochDirectory, type Epoch, type Slot, type View } from "./epoch.ts";
import { linkOnce } from "../publish/publish.ts";
import type { Slots } from "./slots.ts";
import { discard, stage, type Staging } from "../publish/staging.ts";

/** About what the slots of one epoch may take on the disk: each holds the whole state. */
const epochBytes = 64 * 1024 * 1024;
const slotsMax = 4096;
/** However large the state is. */
const slotsFittingMin = 64;

/** A number, or a function of the number of the epoch. */
export type SlotsPerEpoch = number | ((epoch: number) => number);

/**
 * As many slots as there were epochs, `slotsMin` at least. For chains of which there are many, or
 * whose slots are costly: the records of epochs stay for ever and the slots of two or three epochs
 * are there at any time. After n appends there are about 5.7 √n files, instead of 4096 for a young
 * chain, or one per 64 appends for an old one.
 */
export function growingEpochs(slotsMin: number): SlotsPerEpoch {
  return (epoch) => Math.max(slotsMin, epoch);
}

function slotsFor(state: unknown, wanted = slotsMax): number {
  const fitting = Math.max(slotsFittingMin, Math.floor(epochBytes / JSON.stringify(state).length));
  return Math.min(wanted, slotsMax, fitting);
}

export interface EpochRolloverParts<T> {
  readonly staging: Staging;
  /** Where the directories of the epochs are made. */
  readonly directory: string;
  readonly epochs: Chain<Epoch<T>>;
  readonly slots: Slots<T>;
  readonly slotKind: RecordKind<Slot<T>>;
  /** Whether the slots of the epochs that are named here are synced. */
  readonly sync: boolean;
  readonly bootId: string;
  readonly slotsPerEpoch?: SlotsPerEpoch | undefined;
}

export class EpochRollover<T> {
  protected readonly staging: Staging;
  readonly #parts: EpochRolloverParts<T>;

  constructor(parts: EpochRolloverParts<T>) {
    this.staging = parts.staging;
    this.#parts = parts;
  }

  /** Makes sure that there is an epoch in which this process may win. */
  async begin(initial: T): Promise<void> {
    const newest = await this.#parts.epochs.last();
    if (newest === undefined) await this.nameNext(undefined, initial);
    // The machine may have been restarted: then some slots may be gone, and their numbers free
    // again. Or it was not, and other processes still use the epoch: a container may have a boot id
    // of its own.
    else if (!newest.body.synced && newest.body.bootId !== this.#parts.bootId) await this.rollOver(newest);
  }

  /**
   * A process that syncs, because it cannot tell a restart or survives it, wins nothing in an epoch
   * where others do not.
   */
  isDue(epoch: ChainEntry<Epoch<T>>): boolean {
    return this.#parts.sync && !epoch.body.synced;
  }

  /**
   * Names the epoch after one that need not be full. Any number of processes may do it at once,
   * each with as many of the last slots as it has seen: one name counts.
   */
  async rollOver(epoch: ChainEntry<Epoch<T>>): Promise<void> {
    try {
      // Before anything is read: otherwise another process could win a slot after this one has
      // looked. In a directory that is gone altogether no process can win either.
      await this.seal(`${this.#parts.directory}/${epoch.body.directory}`);
      await this.nameNext(epoch, await this.#lastReadableState(epoch));
    } catch (error) {
      // Collected, or a stale handle: the caller looks again.
      if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
    }
  }

  /** Names the epoch after `previous`; undefined when another process has. */
  async nameNext(previous: ChainEntry<Epoch<T>> | undefined, base: T): Promise<ChainEntry<Epoch<T>> | undefined> {
    const { staging, epochs, sync, bootId, slotsPerEpoch } = this.#parts;
    const number = (previous?.number ?? 0) + 1;
    const directory = await makeEpochDirectory(staging, this.#parts.directory, number);
    if (directory === undefined) return undefined;
    const epoch: Epoch<T> = {
      directory,
      bootId,
      synced: sync,
      from: previous === undefined ? 0 : previous.body.from + previous.body.slots,
      slots: typeof slotsPerEpoch === "number" ? slotsPerEpoch : slotsFor(base, slotsPerEpoch?.(number)),
      base,
    };
    // The directory of a process that lost is never named: it is collected by its epoch's number.
    return await epochs.append(directory, (newest) => (newest?.number === previous?.number ? epoch : undefined));
  }

  protected async seal(directory: string): Promise<void> {
    await sealEpochDirectory(this.staging.disk, directory);
  }

  /** For an epoch that is not open any more. */
  async #lastReadableState(epoch: ChainEntry<Epoch<T>>): Promise<T> {
    const { slots } = this.#parts;
    const { disk } = this.staging;
    const empty: View<T> = { epoch, slot: 0, state: epoch.body.base };
    for (let highest = (await findHighestSlot(disk, slots.pathOf(empty))) ?? 0; ; highest++) {
      const view = await slots.highestReadable({ ...empty, slot: highest });
      // The listing of a share may be old.
      const isAll = disk.volume.kind === "local" || highest >= epoch.body.slots;
      if (isAll || (await this.isFree({ ...view, slot: highest + 1 }))) return view.state;
      const next = slots.pathOf(view, highest + 1);
      // The link just failed because of it, and yet the client says that it is absent.
      if (!(await disk.canOpen(next))) throw diskError("ESTALE", "read", next);
    }
  }

  /**
   * Whether no process has won this slot or any after it. Finds out by taking it, which changes
   * nothing.
   */
  protected async isFree(view: View<T>): Promise<boolean> {
    const { slots, slotKind } = this.#parts;
    const { disk, random } = this.staging;
    const slot = { id: randomName(random.bytes(16)), number: view.epoch.body.from + view.slot, state: view.state };
    const bytes = encodeRecord(slotKind, slot);
    const temp = await stage(this.staging, bytes, { sync: false });
    try {
      return await linkOnce(disk, temp, slots.pathOf(view, view.slot), bytes, { mayRepeat: true });
    } finally {
      await discard(this.staging, temp);
    }
  }
}
