// ChainEnd: the end of a rolling chain as far as this process knows it, and how the process finds a
// newer one. It also serves a process that cannot write: for that process the newest readable state
// is the end.
import { holdfastError } from "../../errors.ts";
import { isUnwritable } from "../../ports/disk-error.ts";
import { findHighestSlot, startOf, type View } from "./epoch.ts";
import type { EpochRollover } from "./epoch-rollover.ts";
import type { ChainFiles } from "./slots.ts";

const attemptsMax = 1000;
/**
 * After a race with another writer, this process checks for slots of others before each of this many appends.
 */
const looksAfterMeeting = 64;
/** An upgrade runs while no other process uses the chain, so it hardly ever loses a race. */
const upgradesMax = 3;

export class ChainEnd<T> {
  readonly #files: ChainFiles<T>;
  readonly #rollover: EpochRollover<T>;
  /** Undefined if this process must search for the newest epoch again. */
  known: View<T> | undefined;
  /** False until a write by this process has succeeded; until then it only reads. */
  canWrite = false;
  #looksLeft = 0;

  constructor(files: ChainFiles<T>, rollover: EpochRollover<T>) {
    this.#files = files;
    this.#rollover = rollover;
  }

  /** Returns the known end. If there is none, finds the end of the newest epoch. */
  async get(): Promise<View<T>> {
    return this.known ?? (await this.#enterNewestEpoch());
  }

  /**
   * Returns the end to append to. While others append to a chain on a local disk, it checks for
   * their slots first: a stat costs less than a staged file that loses the race. A process that is
   * alone does not check.
   */
  async getToAppend(): Promise<View<T>> {
    const view = await this.get();
    if (this.#looksLeft === 0) return view;
    this.#looksLeft--;
    this.known = await this.findAfter(view);
    if (this.known !== view) this.#noteOthers();
    return await this.get();
  }

  #noteOthers(): void {
    if (this.#files.staging.disk.volume.kind === "local") this.#looksLeft = looksAfterMeeting;
  }

  /**
   * Returns the end of the chain as far as it is visible, starting from `view`. Undefined if the
   * epoch of `view` is gone.
   */
  async findAfter(view: View<T>): Promise<View<T> | undefined> {
    const { slots, epochs } = this.#files;
    const newest = await slots.findEnd(view);
    if (newest === undefined || newest.slot < view.epoch.body.slots) return newest;
    // The epoch is full: the next one may already exist.
    const epoch = await epochs.last();
    if (epoch === undefined || epoch.number <= view.epoch.number) return newest;
    if (this.#rollover.isDue(epoch)) return undefined;
    return await this.findAfter(startOf(epoch));
  }

  /** Returns the newest end after another process won the slot after `view`. Undefined if the epoch is gone. */
  async findAfterLosing(view: View<T>): Promise<View<T> | undefined> {
    this.#noteOthers();
    if (this.#files.staging.disk.volume.kind === "local") {
      const newest = await this.findAfter(view);
      return newest === view ? undefined : newest;
    }
    // Reads that slot directly: a listing on a share may not show it yet.
    const found = await this.#files.slots.findAt(view, view.slot + 1);
    return found === undefined ? undefined : await this.findAfter(found);
  }

  /** Starts the next epoch after a full one. */
  async rollOver(view: View<T>, options: { readonly upgrade?: boolean } = {}): Promise<void> {
    const epoch = await this.#rollover.nameNext(view.epoch, view.state, options);
    this.known = epoch === undefined ? undefined : startOf(epoch);
  }

  /**
   * Starts an epoch with deltas after one without. A synced epoch must be full first; `fill` takes
   * one slot of it. Older releases know every single step, so a crash leaves a chain that all of
   * them can use.
   */
  async upgrade(fill: () => Promise<unknown>): Promise<void> {
    for (let named = 0; named < upgradesMax;) {
      const view = await this.get();
      const { deltas, slots, synced } = view.epoch.body;
      if (deltas === true) return;
      if (synced && view.slot < slots) {
        await fill();
        continue;
      }
      if (synced) await this.rollOver(view, { upgrade: true });
      else await this.#rollover.rollOver(view.epoch, { upgrade: true });
      this.known = undefined;
      named++;
    }
    const { directory } = this.#files;
    const message = `${directory}: other processes are using it. Stop them, then upgrade again.`;
    throw holdfastError("RESOURCE_BUSY", message, { path: directory, blockedBy: [], worthWaiting: true });
  }

  /**
   * Leaves an epoch that is not open: it was collected long ago, or a process that may be dead
   * began to roll it over. Returns false if this process would have to start the next epoch but
   * cannot write: then this epoch is still the newest.
   */
  async leave({ epoch }: Pick<View<T>, "epoch">): Promise<boolean> {
    this.known = undefined;
    const { epochs } = this.#files;
    try {
      if (!epoch.body.synced && (await epochs.last())?.number === epoch.number) await this.#rollover.rollOver(epoch);
      return true;
    } catch (error) {
      if (this.canWrite || !isUnwritable(error)) throw error;
      return false;
    }
  }

  async #enterNewestEpoch(): Promise<View<T>> {
    const { staging, epochs, slots } = this.#files;
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const epoch = await epochs.last();
      if (epoch === undefined) continue;
      if (this.#rollover.isDue(epoch)) {
        await this.#rollover.rollOver(epoch);
        continue;
      }
      const view = await slots.findEndByListing(startOf(epoch));
      if (view !== undefined) return (this.known = view);
      const highest = await findHighestSlot(staging.disk, slots.pathOf({ epoch }));
      // A missing directory was collected: a newer epoch exists, and the next iteration finds it.
      if (highest === undefined) continue;
      if (!(await this.leave({ epoch }))) return await slots.highestReadable({ ...startOf(epoch), slot: highest });
    }
    throw damagedEpochs(this.#files.directory, "is missing");
  }
}

export function damagedEpochs(directory: string, what: string): Error {
  const path = `${directory}/epochs`;
  const message = `${path}: the directory of the newest epoch ${what}. Restore it from a backup.`;
  return holdfastError("CORRUPT", message, { path });
}
