// RollingChain: a chain of whole states that also forgets. Its numbers are won once and grow for
// ever; its old slots are deleted.
//
// `epochs/<g>` is a plain chain and permanent; each of its records names a directory `<g>-<random>`
// with the slots of that epoch and a file `open`. That file is made before the epoch is named and
// removed before any slot is. So whoever can open it knows that no slot was vacated before: a link
// that succeeded earlier won a name that was never used. No win ever rests on a listing or on an
// absence; a stale one costs a lost race. (What is read, or refused, on a share is as fresh as a
// listing is there.)
import { isDeepStrictEqual } from "node:util";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { hasErrno, isUnwritable } from "../../ports/disk-error.ts";
import { isKnownBoot } from "../../ports/host.ts";
import { getRecord } from "../publish/record-file.ts";
import { Chain, type ChainEntry } from "./chain.ts";
import { ensureDirectory, syncNames } from "../publish/directory.ts";
import {
  epochKind,
  findEpochOfDirectory,
  findHighestSlot,
  removeEpochDirectory,
  slotBytesMax,
  slotKind,
} from "./epoch.ts";
import type { Epoch, Slot, View } from "./epoch.ts";
import { canLinkFrom, linkOnce } from "../publish/publish.ts";
import { Slots } from "./slots.ts";
import { discard, stage, type Staging } from "../publish/staging.ts";
import { EpochRollover, type SlotsPerEpoch, type EpochRolloverParts } from "./epoch-rollover.ts";

/** A race that is lost so often is no race any more. */
const attemptsMax = 1000;
/**
 * The winner of each number that this divides collects. By the numbers of the chain and not by
 * those of a process: a process that opens, appends once and closes has its share of the work, too.
 */
const numbersPerCollection = 64;

export interface RollingChainOptions<T> {
  /** Of the state. */
  readonly kind: RecordKind<T>;
  readonly initial: T;
  /**
   * Whether the append `id` is part of this state or of its past. Asked only of the newest state,
   * and only by an appender that slept while its whole epoch went by and was collected. Undefined
   * when it can no longer be known.
   */
  readonly counts: (state: T, id: string) => boolean | Promise<boolean | undefined>;
  /**
   * Throws when what `made` has new over `before` could not be read back. For large states of which
   * little changes; default: all of it is read back.
   */
  readonly check?: ((made: T, before: T) => void) | undefined;
  /**
   * Default: 4096. Fewer when the state is so large that they would take more than 64 MB, unless it
   * is a number.
   */
  readonly slotsPerEpoch?: SlotsPerEpoch | undefined;
  /**
   * Default true. False on a local disk when nobody who saw a number survives a power cut (locks):
   * the first one to open it under another boot id then begins a new epoch, and the numbers jump. A
   * network mount always syncs, because there the others live on; in an epoch that somebody there
   * has begun, everybody does.
   */
  readonly sync?: boolean | undefined;
  readonly bootId: string;
  /**
   * Whether what was won in an unsynced epoch may be given up because a slot of it is torn. False
   * as long as a process that has won there is alive. Default: always.
   */
  readonly mayGiveUp?: (() => Promise<boolean>) | undefined;
}

export interface RollingEntry<T> {
  /** Grows with every append; may jump. */
  readonly number: number;
  readonly state: T;
}

export interface AppendOptions {
  /**
   * Gives a new path for each attempt, asked for before `change`: the file that becomes the slot is
   * made there, and stays as the slot's second name.
   */
  readonly keepAs?: (() => string) | undefined;
  /** Durable when it is returned, also where the chain's slots are not. Default: as the chain. */
  readonly sync?: boolean | undefined;
}

/** One try to win a slot. */
interface Attempt {
  readonly temp: string;
  readonly bytes: Uint8Array;
  readonly id: string;
  readonly sync: boolean;
}

export class RollingChain<T> {
  protected readonly staging: Staging;
  readonly #directory: string;
  readonly #options: RollingChainOptions<T>;
  readonly #sync: boolean;
  readonly #slotKind: RecordKind<Slot<T>>;
  readonly #epochs: Chain<Epoch<T>>;
  readonly #slots: Slots<T>;
  readonly #rollover: EpochRollover<T>;
  #view: View<T> | undefined;
  /** False for one who could not write when it opened the chain: it only reads, until it can. */
  #isBegun = false;
  /** Up to here this process has seen the slots made durable. */
  #durable: { readonly epoch: number; readonly slot: number } = { epoch: 0, slot: 0 };
  #collecting: Promise<void> | undefined;

  protected constructor(staging: Staging, directory: string, options: RollingChainOptions<T>) {
    this.staging = staging;
    this.#directory = directory;
    this.#options = options;
    // Who does not know his boot cannot tell whether those who saw a number are still there.
    this.#sync = options.sync !== false || staging.disk.volume.kind !== "local" || !isKnownBoot(options.bootId);
    this.#slotKind = slotKind(options.kind);
    this.#epochs = new Chain(staging, `${directory}/epochs`, epochKind(options.kind));
    this.#slots = new Slots(staging.disk, directory, this.#slotKind, (epoch) => this.#mayGiveUp(epoch));
    const { bootId, slotsPerEpoch } = options;
    const parts = { staging, directory, epochs: this.#epochs, slots: this.#slots, slotKind: this.#slotKind };
    this.#rollover = this.newRollover({ ...parts, sync: this.#sync, bootId, slotsPerEpoch });
  }

  protected newRollover(parts: EpochRolloverParts<T>): EpochRollover<T> {
    return new EpochRollover(parts);
  }

  /**
   * Makes the chain if there is none. One that is there can be read also where nothing can be
   * written.
   */
  static async open<T>(staging: Staging, directory: string, options: RollingChainOptions<T>): Promise<RollingChain<T>> {
    const { slotsPerEpoch = 1 } = options;
    if (typeof slotsPerEpoch === "number" && !(Number.isSafeInteger(slotsPerEpoch) && slotsPerEpoch >= 1))
      throw new RangeError(`slotsPerEpoch must be a whole number from 1, not ${slotsPerEpoch}.`);
    const chain = new this(staging, directory, options);
    try {
      await chain.#begin();
    } catch (error) {
      if (!isUnwritable(error) || !(await chain.#isThere())) throw error;
    }
    return chain;
  }

  /**
   * Makes the state that `change` derives from the newest one the next entry, or nothing when it
   * returns undefined. `change` may be called several times, also with a state that turns out to be
   * void, so it must have no effects. What is returned is won for good, whatever comes later.
   */
  async append(
    id: string,
    change: (newest: T, number: number) => T | undefined,
    { keepAs, sync = this.#sync }: AppendOptions = {},
  ): Promise<RollingEntry<T> | undefined> {
    if (!this.#isBegun) await this.#begin();
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const view = this.#view ?? (await this.#enter());
      if (view.slot >= view.epoch.body.slots) {
        await this.#roll(view);
        continue;
      }
      const number = view.epoch.body.from + view.slot + 1;
      const path = keepAs?.();
      const state = change(view.state, number);
      if (state === undefined) {
        if (await this.#isNewest(view)) return undefined;
        continue;
      }
      // A new temp file each time: one that may have been linked must never be written again.
      this.#options.check?.(state, view.state);
      const isChecked = this.#options.check !== undefined;
      const bytes = encodeRecord(this.#slotKind, { id, number, state }, { isChecked, bytesMax: slotBytesMax });
      const isSynced = sync || view.epoch.body.synced;
      const temp = await stage(this.staging, bytes, { sync: isSynced, path });
      let won = false;
      try {
        won = await this.#win({ ...view, slot: view.slot + 1, state }, { temp, bytes, id, sync: isSynced });
      } finally {
        // Also when it failed: a full disk must not be filled by what did not fit.
        if (!won || keepAs === undefined) await discard(this.staging, temp);
      }
      if (!won) continue;
      if (number % numbersPerCollection === 0) this.#collectInBackground();
      return { number, state };
    }
    const message = `${this.#directory}: lost the race for the next number ${attemptsMax} times.`;
    throw holdfastError("RESOURCE_BUSY", message, { path: this.#directory, blockedBy: [], worthWaiting: true });
  }

  /**
   * The newest state that can be seen, for those who act on it. Where slots are synced, it is
   * durable.
   */
  async read(): Promise<RollingEntry<T>> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const view = await this.#advance(this.#view ?? (await this.#enter()));
      this.#view = view;
      if (view === undefined) continue;
      if (view.epoch.body.synced) await this.settleShown(view);
      const entry = { number: view.epoch.body.from + view.slot, state: view.state };
      // After reading, not before: a slot that was linked late into a collected epoch looks like
      // any other.
      if (await this.#isOpenToRead(view)) return entry;
      try {
        await this.#leave(view);
      } catch (error) {
        // Nobody has named the next epoch, and this process cannot: so this is still the newest
        // state.
        if (this.#isBegun || !isUnwritable(error)) throw error;
        return entry;
      }
    }
    throw this.#damaged('has lost its "open" file');
  }

  /**
   * Whether the newest entry that this process knows is still there as it was. False: the directory
   * was replaced, or put back to an older state, which nobody does who uses the chain. The next
   * append would then follow a state that never was, and leave a gap behind it.
   */
  async isStanding(): Promise<boolean> {
    const view = this.#view;
    if (view === undefined) return true;
    const { epoch, slot, state } = view;
    try {
      if (slot === 0) return (await this.#epochs.get(epoch.number)).id === epoch.id;
      const found = await getRecord(this.staging.disk, this.#slotKind, this.#slots.pathOf(view, slot));
      return isDeepStrictEqual(found.state, state);
    } catch (error) {
      // A handle that tells nothing.
      if (hasErrno(error, "ESTALE")) return true;
      if (!hasErrno(error, "ENOENT")) throw error;
      // Collected, if others have gone on since.
      return ((await this.#epochs.last())?.number ?? 0) > epoch.number;
    }
  }

  /**
   * Deletes the slots of epochs that nobody can win in any more; returns how many epochs. Any
   * number of collectors may run at once.
   */
  async collect(): Promise<number> {
    const directories: { readonly name: string; readonly epoch: number }[] = [];
    let highest = 0;
    for (const name of await this.staging.disk.list(this.#directory)) {
      const epoch = findEpochOfDirectory(name);
      if (epoch !== undefined) directories.push({ name, epoch });
      highest = Math.max(highest, epoch ?? 0);
    }
    // An epoch that is named has its directory: mostly there is nothing to collect, and then
    // nothing else is asked.
    if (!directories.some(({ epoch }) => isCollectable(epoch, highest))) return 0;
    const newest = (await this.#epochs.last())?.number ?? 0;
    let collected = 0;
    for (const { name, epoch } of directories)
      if (isCollectable(epoch, newest) && (await this.removeEpoch(`${this.#directory}/${name}`))) collected++;
    return collected;
  }

  /**
   * Resolves when nothing is being collected in the background any more. To be called before what
   * the chain lies in is closed.
   */
  async settled(): Promise<void> {
    await this.#collecting;
  }

  #collectInBackground(): void {
    this.#collecting ??= this.collect().then(
      () => (this.#collecting = undefined),
      // What stands in the way is left to the next collector.
      () => (this.#collecting = undefined),
    );
  }

  protected async removeEpoch(directory: string): Promise<boolean> {
    return await removeEpochDirectory(this.staging.disk, directory);
  }

  /** Whether everything in this epoch still counts. Only "yes" proves anything. */
  protected async isOpen(view: View<T>): Promise<boolean> {
    const path = `${this.#slots.pathOf(view)}/open`;
    const { disk } = this.staging;
    return disk.volume.kind === "local" ? await disk.canOpen(path) : await canLinkFrom(this.staging, path);
  }

  /**
   * The same for one who only reads: who may write nothing on a share has no better answer than an
   * open, which may be an old one.
   */
  async #isOpenToRead(view: View<T>): Promise<boolean> {
    try {
      return await this.isOpen(view);
    } catch (error) {
      if (!isUnwritable(error)) throw error;
      return await this.staging.disk.canOpen(`${this.#slots.pathOf(view)}/open`);
    }
  }

  /** Sees to it that there is an epoch in which this process may win. */
  async #begin(): Promise<void> {
    await ensureDirectory(this.staging.disk, `${this.#directory}/epochs`);
    await this.#rollover.begin(this.#options.initial);
    this.#isBegun = true;
  }

  /**
   * Also when a newer epoch is named: then another process has given it up, and the next look finds
   * the newer one.
   */
  async #mayGiveUp({ number }: ChainEntry<Epoch<T>>): Promise<boolean> {
    if (((await this.#epochs.last())?.number ?? 0) > number) return true;
    return (await this.#options.mayGiveUp?.()) ?? true;
  }

  async #isThere(): Promise<boolean> {
    try {
      return (await this.#epochs.last()) !== undefined;
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return false;
      throw error;
    }
  }

  /**
   * The epoch that the slot is in, because somebody else may have named it without having come to
   * his sync: also where slots are not synced, or its numbers would come back after a power cut.
   * Then the slot.
   */
  protected async makeDurable(view: View<T>, sync: boolean): Promise<void> {
    await this.#epochs.makeDurable(view.epoch.number);
    if (sync) await syncNames(this.staging.disk, this.#slots.pathOf(view));
  }

  /**
   * Whoever has won the slot may not have come to its sync yet, and what a power cut takes must not
   * have been shown to anybody. Only on a local disk: the names of a share are durable when its
   * server answers, and another client has no way to ask for more.
   */
  protected async settleShown(view: View<T>): Promise<void> {
    if (this.staging.disk.volume.kind !== "local" || this.#isKnownDurable(view)) return;
    try {
      await this.makeDurable(view, true);
    } catch (error) {
      // The epoch was collected since: `isOpen` says so next, and the newest epoch is read instead.
      if (hasErrno(error, "ENOENT")) return;
      throw error;
    }
    this.#durable = { epoch: view.epoch.number, slot: view.slot };
  }

  #isKnownDurable({ epoch, slot }: View<T>): boolean {
    return epoch.number < this.#durable.epoch || (epoch.number === this.#durable.epoch && slot <= this.#durable.slot);
  }

  /** Whether the slot of `next` is ours for good. */
  async #win(next: View<T>, { temp, bytes, id, sync }: Attempt): Promise<boolean> {
    const path = this.#slots.pathOf(next, next.slot);
    let linked = false;
    try {
      linked = await linkOnce(this.staging.disk, temp, path, bytes, { mayRepeat: true });
      if (!linked) {
        this.#view = await this.#overtakenAt(next);
        return false;
      }
      await this.makeDurable(next, sync);
      if (sync) this.#durable = { epoch: next.epoch.number, slot: next.slot };
      if (await this.isOpen(next)) {
        this.#view = next;
        return true;
      }
    } catch (error) {
      this.#view = undefined;
      if (!hasErrno(error, "ENOENT", "ESTALE")) throw linked ? this.#inDoubt(id, path, error) : error;
    }
    // In doubt: the epoch was full and collected while we slept. If our link came before, everybody
    // after us built on it.
    this.#view = undefined;
    let counts: boolean | undefined;
    try {
      counts = await this.#options.counts((await this.read()).state, id);
    } catch (error) {
      // What cannot be read at all has to be mended first.
      throw isHoldfastError(error, "CORRUPT", "NEWER_FORMAT") ? error : this.#inDoubt(id, path, error);
    }
    if (counts === undefined) throw this.#inDoubt(id, path, undefined);
    return counts;
  }

  #inDoubt(id: string, path: string, cause: unknown): Error {
    const message = `It is not known whether the append ${id} counts: the answer was lost. Read the chain before you repeat it: its state tells.`;
    return holdfastError("OUTCOME_UNKNOWN", message, { path }, cause);
  }

  /**
   * The newest after the slot of `view` went to somebody else; the state of `view` never counted.
   * Undefined when the epoch is gone.
   */
  async #overtakenAt(view: View<T>): Promise<View<T> | undefined> {
    if (this.staging.disk.volume.kind === "local") {
      const before = { ...view, slot: view.slot - 1 };
      const newest = await this.#advance(before);
      return newest === before ? undefined : newest;
    }
    // From that slot on: a listing of a share may not have it yet.
    const found = await this.#slots.findAt(view, view.slot);
    return found === undefined ? undefined : await this.#advance(found);
  }

  /**
   * A refusal is an answer that somebody acts on: it must rest on the newest state, and on one that
   * counts.
   */
  async #isNewest(view: View<T>): Promise<boolean> {
    const newest = await this.#advance(view);
    if (newest?.epoch.number === view.epoch.number && newest.slot === view.slot) {
      if (await this.isOpen(view)) return true;
      await this.#leave(view);
    } else this.#view = newest;
    return false;
  }

  /** Goes to the end of the chain as far as it can be seen; undefined when the epoch is gone. */
  async #advance(view: View<T>): Promise<View<T> | undefined> {
    const newest = await this.#slots.findEnd(view);
    if (newest === undefined || newest.slot < view.epoch.body.slots) return newest;
    // Full: the next epoch may have begun already.
    const epoch = await this.#epochs.last();
    if (epoch === undefined || epoch.number <= view.epoch.number) return newest;
    if (this.#rollover.isDue(epoch)) return undefined;
    return await this.#advance({ epoch, slot: 0, state: epoch.body.base });
  }

  async #enter(): Promise<View<T>> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const epoch = await this.#epochs.last();
      if (epoch !== undefined && this.#rollover.isDue(epoch)) {
        await this.#rollover.rollOver(epoch);
        continue;
      }
      if (epoch === undefined) continue;
      const view = await this.#slots.findEndByListing({ epoch, slot: 0, state: epoch.body.base });
      if (view !== undefined) return (this.#view = view);
      // Gone means collected, so a newer epoch exists, and the next look will find it.
      const highest = await findHighestSlot(this.staging.disk, this.#slots.pathOf({ epoch }));
      if (highest === undefined) continue;
      try {
        await this.#leave({ epoch });
      } catch (error) {
        if (this.#isBegun || !isUnwritable(error)) throw error;
        return await this.#slots.highestReadable({ epoch, slot: highest, state: epoch.body.base });
      }
    }
    throw this.#damaged("is missing");
  }

  /** The epoch is not open: collected long ago, or being succeeded by somebody who may be dead. */
  async #leave({ epoch }: Pick<View<T>, "epoch">): Promise<void> {
    this.#view = undefined;
    if (!epoch.body.synced && (await this.#epochs.last())?.number === epoch.number)
      await this.#rollover.rollOver(epoch);
  }

  async #roll(view: View<T>): Promise<void> {
    const epoch = await this.#rollover.nameNext(view.epoch, view.state);
    this.#view = epoch === undefined ? undefined : { epoch, slot: 0, state: epoch.body.base };
  }

  #damaged(what: string): Error {
    const path = `${this.#directory}/epochs`;
    const message = `${path}: the directory of the newest epoch ${what}. Restore it from a backup.`;
    return holdfastError("CORRUPT", message, { path });
  }
}

/** Two later epochs are named for ever, so this stays right however long the collector sleeps. */
function isCollectable(epoch: number, newest: number): boolean {
  return epoch + 2 <= newest;
}
