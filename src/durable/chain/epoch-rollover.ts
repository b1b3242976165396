// Succession: how one epoch of a rolling chain follows another, be it that the last one is full or
// that its slots count no longer.
//
// Slots that are not synced count only until the power fails. Whoever cannot be sure that it has
// not (another boot id), or lives on when it does (a share), takes the `open` of that epoch away
// and goes on in the next one. Whoever had won saw it after his link, so he is among what is found
// then, also if he lives; all later ones follow.
import { randomName } from "../../format/id.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { diskError, hasErrno } from "../../ports/disk-error.ts";
import type { Chain, ChainEntry } from "./chain.ts";
import { findHighestSlot, makeEpochDirectory, sealEpochDirectory, type Epoch, type Slot, type View } from "./epoch.ts";
import { linkOnce } from "../publish/publish.ts";
import type { Slots } from "./slots.ts";
import { discard, stage, type Staging } from "../publish/staging.ts";

/** What the slots of one epoch may take on the disk, about: each holds the whole state. */
const epochBytes = 64 * 1024 * 1024;
const slotsMax = 4096;
/** However large the state is. */
const slotsFittingMin = 64;

/** A number, or what is made of the number of the epoch. */
export type SlotsPerEpoch = number | ((epoch: number) => number);

/**
 * As many slots as there were epochs, `slotsMin` at least. For chains of which there are many, or
 * whose slots are costly: the records of epochs stay for ever and the slots of two or three epochs
 * are there at any time, so after n appends there are about 5.7 √n files, and not 4096 while a
 * chain is young or one for each 64 appends when it is old.
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

  /** Sees to it that there is an epoch in which this process may win. */
  async begin(initial: T): Promise<void> {
    const newest = await this.#parts.epochs.last();
    if (newest === undefined) await this.nameNext(undefined, initial);
    // Perhaps the machine was restarted: some slots may be gone, their numbers free again. Perhaps
    // it was not, and others live in it: a container may have a boot id of its own.
    else if (!newest.body.synced && newest.body.bootId !== this.#parts.bootId) await this.rollOver(newest);
  }

  /**
   * Whoever syncs, because he cannot tell a restart or lives through it, wins nothing where others
   * do not.
   */
  isDue(epoch: ChainEntry<Epoch<T>>): boolean {
    return this.#parts.sync && !epoch.body.synced;
  }

  /**
   * Names the epoch after one that need not be full. Any number of processes may do it at once,
   * with more or fewer of those who came too late: one name counts.
   */
  async rollOver(epoch: ChainEntry<Epoch<T>>): Promise<void> {
    try {
      // Before anything is read: else somebody could win in there after we have looked. If the
      // directory is gone altogether, nobody can either.
      await this.seal(`${this.#parts.directory}/${epoch.body.directory}`);
      await this.nameNext(epoch, await this.#lastReadableState(epoch));
    } catch (error) {
      // Collected, or a handle that tells nothing: whoever comes here looks again.
      if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
    }
  }

  /** Names the epoch after `previous`; undefined when somebody else has. */
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
    // The directory of a loser is named nowhere and never will be: it is collected with its epoch's
    // number.
    return await epochs.append(directory, (newest) => (newest?.number === previous?.number ? epoch : undefined));
  }

  protected async seal(directory: string): Promise<void> {
    await sealEpochDirectory(this.staging.disk, directory);
  }

  /** Of an epoch that is not open any more. */
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
      // The client has just been told of it, and denies it.
      if (!(await disk.canOpen(next))) throw diskError("ESTALE", "read", next);
    }
  }

  /**
   * Whether nobody has ever won this slot, nor any after it: it can be taken. What takes it changes
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
