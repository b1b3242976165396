// EpochRollover: starts the next epoch of a rolling chain when the last one is full, or when its
// slots no longer count.
// Unsynced slots count only until the power fails. A process that cannot rule out a power cut
// (another boot id), or that survives it (a share), removes the epoch's `open` file and continues
// in the next epoch.
// The winner of a slot saw `open` after its link. The read that follows the removal therefore finds
// its slot, even if the winner still runs. All later slots lose.
import { randomName } from "../../format/id.ts";
import { encodeRecord } from "../../format/record.ts";
import { diskError, hasErrno } from "../../ports/disk-error.ts";
import type { ChainEntry } from "./chain.ts";
import { findHighestSlot, makeEpochDirectory, sealEpochDirectory, startOf, type Epoch, type View } from "./epoch.ts";
import { linkOnce } from "../publish/publish.ts";
import type { ChainFiles } from "./slots.ts";
import { deltasMax } from "./state-delta.ts";
import { discard, stage } from "../publish/staging.ts";

/** About how much disk the slots of one epoch may use if each holds the whole state. */
const epochBytes = 64 * 1024 * 1024;
/** The same if most slots are deltas of about `deltaBytes`. */
const epochBytesOfDeltas = 8 * 1024 * 1024;
const deltaBytes = 512;
/** The limit for small states. */
export const slotsMax = 4096;
/** The minimum for large states. */
const slotsFittingMin = 64;

/** Number of slots of an epoch: a constant, or a function of the number of the epoch. */
export type SlotsPerEpoch = number | ((epoch: number) => number);

/**
 * Gives each epoch as many slots as there were epochs before it, at least `slotsMin`. It is for
 * chains that are numerous or have costly slots: epoch records are permanent, and the slots of two
 * or three epochs exist at any time. After n appends there are about 5.7 √n files, instead of 4096
 * for a young chain or one per 64 appends for an old one.
 */
export function growingEpochs(slotsMin: number): SlotsPerEpoch {
  return (epoch) => Math.max(slotsMin, epoch);
}

function slotsFor(state: unknown, hasDeltas: boolean, wanted = slotsMax): number {
  const { length } = JSON.stringify(state);
  const fitting = hasDeltas ? epochBytesOfDeltas / (length / deltasMax + deltaBytes) : epochBytes / length;
  return Math.min(wanted, slotsMax, Math.max(slotsFittingMin, Math.floor(fitting)));
}

export interface RolloverOptions {
  /** True if the slots of the epochs started here are synced. */
  readonly sync: boolean;
  readonly bootId: string;
  readonly slotsPerEpoch?: SlotsPerEpoch | undefined;
  /**
   * True if a chain that is created here has deltas. An existing chain keeps its format until it is
   * upgraded, because older releases may use it.
   */
  readonly hasDeltas: boolean;
}

export class EpochRollover<T> {
  readonly #files: ChainFiles<T>;
  readonly #options: RolloverOptions;

  constructor(files: ChainFiles<T>, options: RolloverOptions) {
    this.#files = files;
    this.#options = options;
  }

  /** Makes sure that there is an epoch in which this process can win a slot. */
  async begin(initial: T): Promise<void> {
    const newest = await this.#files.epochs.last();
    if (newest === undefined) await this.nameNext(undefined, initial);
    // The machine may have restarted: then some slots may be lost and their numbers free again. Or
    // it did not restart, and other processes still use the epoch: a container may have its own
    // boot id.
    else if (!newest.body.synced && newest.body.bootId !== this.#options.bootId) await this.rollOver(newest);
  }

  /**
   * True if this process must not win slots in `epoch`: it syncs, because it cannot detect a
   * restart or survives one, and the epoch's other processes do not.
   */
  isDue(epoch: ChainEntry<Epoch<T>>): boolean {
    return this.#options.sync && !epoch.body.synced;
  }

  /**
   * Starts the epoch after one that need not be full. Any number of processes may do it at once,
   * each with the last slots that it saw: one of the names wins.
   */
  async rollOver(epoch: ChainEntry<Epoch<T>>, options: { readonly upgrade?: boolean } = {}): Promise<void> {
    try {
      // Seal before reading: otherwise another process could win a slot after this one read. Nobody
      // can win in a directory that is gone.
      await this.seal(`${this.#files.directory}/${epoch.body.directory}`);
      await this.nameNext(epoch, await this.lastReadableState(epoch), options);
    } catch (error) {
      // The epoch was collected, or the handle is stale: the caller searches again.
      if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
    }
  }

  /**
   * Starts the epoch after `previous` and skips `skip` numbers. Returns undefined if another process started it. The
   * new epoch has deltas if `previous` has, or if this is an `upgrade`.
   */
  async nameNext(
    previous: ChainEntry<Epoch<T>> | undefined,
    base: T,
    { skip = 0, upgrade = false }: { readonly skip?: number; readonly upgrade?: boolean } = {},
  ): Promise<ChainEntry<Epoch<T>> | undefined> {
    const { staging, epochs } = this.#files;
    const { sync, bootId, slotsPerEpoch } = this.#options;
    const isNew = previous === undefined || upgrade;
    const hasDeltas = isNew ? this.#options.hasDeltas : previous.body.deltas === true;
    const number = (previous?.number ?? 0) + 1;
    const directory = await makeEpochDirectory(staging, this.#files.directory, number);
    if (directory === undefined) return undefined;
    const epoch: Epoch<T> = {
      directory,
      bootId,
      synced: sync,
      from: skip + (previous === undefined ? 0 : previous.body.from + previous.body.slots),
      slots: typeof slotsPerEpoch === "number" ? slotsPerEpoch : slotsFor(base, hasDeltas, slotsPerEpoch?.(number)),
      base,
      ...(hasDeltas ? { deltas: true } : {}),
    };
    // The directory of a process that lost is never named; it is collected by its epoch's number.
    return await epochs.append(directory, (newest) => (newest?.number === previous?.number ? epoch : undefined));
  }

  /** Makes it impossible to win another slot in the epoch. */
  async seal(directory: string): Promise<void> {
    await sealEpochDirectory(this.#files.staging.disk, directory);
  }

  /** Returns the last readable state of an epoch that is no longer open. */
  async lastReadableState(epoch: ChainEntry<Epoch<T>>): Promise<T> {
    const { staging, slots } = this.#files;
    const { disk } = staging;
    const empty = startOf(epoch);
    for (let highest = (await findHighestSlot(disk, slots.pathOf(empty))) ?? 0; ; highest++) {
      const view = await slots.highestReadable({ ...empty, slot: highest });
      // The listing of a share may be stale.
      const isAll = disk.volume.kind === "local" || highest >= epoch.body.slots;
      if (isAll || (await this.isFree({ ...view, slot: highest + 1 }))) return view.state;
      const next = slots.pathOf(view, highest + 1);
      // The link just failed with EEXIST, yet the client reports the name as absent.
      if (!(await disk.canOpen(next))) throw diskError("ESTALE", "read", next);
    }
  }

  /**
   * True if no process won this slot or a later one. It finds out by taking the slot with the same
   * state, which changes nothing.
   */
  async isFree(view: View<T>): Promise<boolean> {
    const { staging, slots, slotKind } = this.#files;
    const { disk, random } = staging;
    const slot = { id: randomName(random.bytes(16)), number: view.epoch.body.from + view.slot, state: view.state };
    const bytes = encodeRecord(slotKind, slot);
    const temp = await stage(staging, bytes, { sync: false });
    try {
      return await linkOnce(disk, temp, slots.pathOf(view, view.slot), bytes, { mayRepeat: true });
    } finally {
      await discard(staging, temp);
    }
  }
}
