// RollingChain: a chain of whole states that also forgets. Its numbers are won once and grow for
// ever; its old slots are deleted.
//
// `epochs/<g>` is a plain chain and permanent. Each of its records names a directory `<g>-<random>`
// with the slots of that epoch and a file `open`. That file is made before the epoch is named and
// removed before any slot is. So a process that can open it knows that no slot was vacated before:
// a link that succeeded earlier won a name that was never used. No win ever rests on a listing or
// on an absence; a stale one costs a lost race. (What is read, or refused, on a share is as fresh
// as a listing is there.)
import { isDeepStrictEqual } from "node:util";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import { hasErrno, isUnwritable } from "../../ports/disk-error.ts";
import { isKnownBoot } from "../../ports/host.ts";
import { ensureDirectory, syncNames } from "../publish/directory.ts";
import { canLinkFrom, linkOnce } from "../publish/publish.ts";
import { getRecord } from "../publish/record-file.ts";
import { discard, stage, type Staging } from "../publish/staging.ts";
import { Fifo } from "../wait/fifo.ts";
import { ChainEnd, damagedEpochs } from "./chain-end.ts";
import { Chain, type ChainEntry } from "./chain.ts";
import { EpochCollector } from "./epoch-collector.ts";
import { EpochRollover, type SlotsPerEpoch, type EpochRolloverParts } from "./epoch-rollover.ts";
import { epochKind, slotBytesMax, slotKind, type Epoch, type Slot, type View } from "./epoch.ts";
import { Slots } from "./slots.ts";

/** A race that is lost so often is no race any more. */
const attemptsMax = 1000;
/**
 * The winner of each number that this divides collects. By the numbers of the chain, not by those
 * of a process: a process that opens, appends once and closes does its share of the work, too.
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
   * Default true. False on a local disk when no process that saw a number survives a power cut
   * (locks): the first process that opens the chain under another boot id then begins a new epoch,
   * and the numbers jump. A network mount always syncs, because other machines live on; in an epoch
   * that was begun there, all processes sync.
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
  readonly #end: ChainEnd<T>;
  readonly #collector: EpochCollector<T>;
  /** The callers of this process append in turn: racing each other, each would stage and sync slots that it loses. */
  readonly #turns = new Fifo();
  /** Up to here this process has seen the slots made durable. */
  #durable: { readonly epoch: number; readonly slot: number } = { epoch: 0, slot: 0 };

  protected constructor(staging: Staging, directory: string, options: RollingChainOptions<T>) {
    const { disk } = staging;
    this.staging = staging;
    this.#directory = directory;
    this.#options = options;
    // Without a boot id a process cannot tell whether those that saw a number are still there.
    this.#sync = options.sync !== false || disk.volume.kind !== "local" || !isKnownBoot(options.bootId);
    this.#slotKind = slotKind(options.kind);
    const epochs = new Chain(staging, `${directory}/epochs`, epochKind(options.kind));
    const slots = new Slots(disk, directory, this.#slotKind, (epoch) => this.#mayGiveUp(epoch));
    const { bootId, slotsPerEpoch } = options;
    const parts = { staging, directory, epochs, slots, slotKind: this.#slotKind };
    const rollover = this.newRollover({ ...parts, sync: this.#sync, bootId, slotsPerEpoch });
    this.#epochs = epochs;
    this.#slots = slots;
    this.#rollover = rollover;
    this.#end = new ChainEnd({ disk, directory, epochs, slots, rollover });
    this.#collector = this.newCollector(epochs, directory);
  }

  protected newRollover(parts: EpochRolloverParts<T>): EpochRollover<T> {
    return new EpochRollover(parts);
  }

  protected newCollector(epochs: Chain<Epoch<T>>, directory: string): EpochCollector<T> {
    return new EpochCollector(this.staging.disk, directory, epochs);
  }

  /**
   * Makes the chain if there is none. An existing one can be read also where nothing can be
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
      if (!isUnwritable(error) || !(await chain.#exists())) throw error;
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
    options: AppendOptions = {},
  ): Promise<RollingEntry<T> | undefined> {
    await this.#turns.take();
    try {
      return await this.#append(id, change, options);
    } finally {
      this.#turns.give();
    }
  }

  async #append(
    id: string,
    change: (newest: T, number: number) => T | undefined,
    { keepAs, sync = this.#sync }: AppendOptions,
  ): Promise<RollingEntry<T> | undefined> {
    if (!this.#end.canWrite) await this.#begin();
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const view = await this.#end.get();
      if (view.slot >= view.epoch.body.slots) {
        await this.#end.rollOver(view);
        continue;
      }
      const number = view.epoch.body.from + view.slot + 1;
      const path = keepAs?.();
      const state = change(view.state, number);
      if (state === undefined) {
        if (await this.#isNewest(view)) return undefined;
        continue;
      }
      this.#options.check?.(state, view.state);
      const isChecked = this.#options.check !== undefined;
      const bytes = encodeRecord(this.#slotKind, { id, number, state }, { isChecked, bytesMax: slotBytesMax });
      const isSynced = sync || view.epoch.body.synced;
      // A new temp file each time: one that may have been linked must never be written again.
      const temp = await stage(this.staging, bytes, { sync: isSynced, path });
      let won = false;
      try {
        won = await this.#win({ ...view, slot: view.slot + 1, state }, { temp, bytes, id, sync: isSynced });
      } finally {
        // Also when it failed: a full disk must not be filled by what did not fit.
        if (!won || keepAs === undefined) await discard(this.staging, temp);
      }
      if (!won) continue;
      if (number % numbersPerCollection === 0) this.#collector.collectInBackground();
      return { number, state };
    }
    const message = `${this.#directory}: lost the race for the next number ${attemptsMax} times. Nothing was written: try again later.`;
    throw holdfastError("RESOURCE_BUSY", message, { path: this.#directory, blockedBy: [], worthWaiting: true });
  }

  /** The newest state that can be seen, to be acted on. Where slots are synced, it is durable. */
  async read(): Promise<RollingEntry<T>> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const view = await this.#end.findAfter(await this.#end.get());
      this.#end.known = view;
      if (view === undefined) continue;
      if (view.epoch.body.synced) await this.settleShown(view);
      const entry = { number: view.epoch.body.from + view.slot, state: view.state };
      // After reading, not before: a slot that was linked late into a collected epoch looks like
      // any other.
      if ((await this.#isOpenToRead(view)) || !(await this.#end.leave(view))) return entry;
    }
    throw damagedEpochs(this.#directory, 'has lost its "open" file');
  }

  /**
   * Whether the newest entry that this process knows is still there as it was. False: the directory
   * was replaced, or put back to an older state, which no process that uses the chain does. The
   * next append would then follow a state that never was, and leave a gap behind it.
   */
  async isStanding(): Promise<boolean> {
    const view = this.#end.known;
    if (view === undefined) return true;
    const { epoch, slot, state } = view;
    try {
      if (slot === 0) return (await this.#epochs.get(epoch.number)).id === epoch.id;
      const found = await getRecord(this.staging.disk, this.#slotKind, this.#slots.pathOf(view, slot));
      return isDeepStrictEqual(found.state, state);
    } catch (error) {
      // A stale handle tells nothing.
      if (hasErrno(error, "ESTALE")) return true;
      if (!hasErrno(error, "ENOENT")) throw error;
      // Collected, if others have gone on since.
      return ((await this.#epochs.last())?.number ?? 0) > epoch.number;
    }
  }

  /** Deletes the slots of epochs in which no process can win any more; returns how many epochs. */
  async collect(): Promise<number> {
    return await this.#collector.collect();
  }

  /**
   * Resolves when nothing is being collected in the background. Called before what the chain lies
   * in is closed.
   */
  async settled(): Promise<void> {
    await this.#collector.settled();
  }

  /** Whether everything in this epoch still counts. Only "yes" proves anything. */
  protected async isOpen(view: View<T>): Promise<boolean> {
    const path = `${this.#slots.pathOf(view)}/open`;
    const { disk } = this.staging;
    return disk.volume.kind === "local" ? await disk.canOpen(path) : await canLinkFrom(this.staging, path);
  }

  /**
   * The same for a reader: a process that can write nothing on a share has no better answer than an
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

  /** Makes sure that there is an epoch in which this process may win. */
  async #begin(): Promise<void> {
    await ensureDirectory(this.staging.disk, `${this.#directory}/epochs`);
    await this.#rollover.begin(this.#options.initial);
    this.#end.canWrite = true;
  }

  /**
   * Also when a newer epoch is named: then another process has given this one up, and the next look
   * finds the newer one.
   */
  async #mayGiveUp({ number }: ChainEntry<Epoch<T>>): Promise<boolean> {
    if (((await this.#epochs.last())?.number ?? 0) > number) return true;
    return (await this.#options.mayGiveUp?.()) ?? true;
  }

  async #exists(): Promise<boolean> {
    try {
      return (await this.#epochs.last()) !== undefined;
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return false;
      throw error;
    }
  }

  /**
   * Makes the epoch of the slot durable, then the slot. The epoch also where slots are not synced:
   * the process that named it may not have synced it yet, and its numbers would come back after a
   * power cut.
   */
  protected async makeDurable(view: View<T>, sync: boolean): Promise<void> {
    await this.#epochs.makeDurable(view.epoch.number);
    if (sync) await syncNames(this.staging.disk, this.#slots.pathOf(view));
  }

  /**
   * Makes a slot durable before it is shown: its winner may not have synced it yet, and a power cut
   * must not take what was shown. Only on a local disk: the names of a share are durable when its
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

  /** Whether this append has won the slot of `next` for good. */
  async #win(next: View<T>, { temp, bytes, id, sync }: Attempt): Promise<boolean> {
    const path = this.#slots.pathOf(next, next.slot);
    let linked = false;
    try {
      linked = await linkOnce(this.staging.disk, temp, path, bytes, { mayRepeat: true });
      if (!linked) {
        this.#end.known = await this.#end.findAfterLosing(next);
        return false;
      }
      await this.makeDurable(next, sync);
      if (sync) this.#durable = { epoch: next.epoch.number, slot: next.slot };
      if (await this.isOpen(next)) {
        this.#end.known = next;
        return true;
      }
    } catch (error) {
      this.#end.known = undefined;
      if (!hasErrno(error, "ENOENT", "ESTALE")) throw linked ? this.#inDoubt(id, path, error) : error;
    }
    // In doubt: the epoch was full and collected while this process slept. If the link came before
    // that, all later states build on it.
    this.#end.known = undefined;
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

  /** A refusal is acted on: it must rest on the newest state, and on one that counts. */
  async #isNewest(view: View<T>): Promise<boolean> {
    const newest = await this.#end.findAfter(view);
    if (newest?.epoch.number === view.epoch.number && newest.slot === view.slot) {
      if (await this.isOpen(view)) return true;
      await this.#end.leave(view);
    } else this.#end.known = newest;
    return false;
  }
}
