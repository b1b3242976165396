// RollingChain: a chain of states that discards old ones. Its numbers are won once and grow without
// limit; old slots are deleted.
//
// `epochs/<g>` is a plain, permanent chain. Each of its records names a directory `<g>-<random>`
// with the slots of that epoch and a file `open`. The `open` file is created before the epoch is
// named and removed before any slot is. A process that can open it therefore knows that no slot was
// vacated, and that its earlier link won a name that was never used. No win rests on a listing or
// on an absence; a stale one only costs a lost race. (On a share, what is read or refused is as
// fresh as a listing there.)
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
import { allEnded } from "../wait/in-parallel.ts";
import { ChainEnd, damagedEpochs } from "./chain-end.ts";
import { repairChain } from "./chain-repair.ts";
import { Chain, type ChainEntry } from "./chain.ts";
import { EpochCollector } from "./epoch-collector.ts";
import { EpochRollover } from "./epoch-rollover.ts";
import {
  epochKind,
  slotBytesMax,
  slotKind,
  startOf,
  type Epoch,
  type Slot,
  type View,
  type WholeSlot,
} from "./epoch.ts";
import type { AppendOptions, RollingChainOptions, RollingEntry } from "./rolling-chain-options.ts";
import { Slots, type ChainFiles } from "./slots.ts";
import { slotFor } from "./state-delta.ts";

export type { AppendOptions, RollingChainOptions, RollingEntry } from "./rolling-chain-options.ts";

/** A process that loses this many races in a row reports RESOURCE_BUSY. */
const attemptsMax = 1000;
/**
 * The winner of each multiple of this number collects. Chain numbers decide, not a count per
 * process: a process that opens, appends once and closes then does its share too.
 */
const numbersPerCollection = 64;
/** A larger slot does not get a second name for `keepAs`. */
const keptBytesMax = 16 * 1024;

/** One attempt to win a slot. */
interface Attempt<T> {
  /** The end that the attempt builds on. */
  readonly after: View<T>;
  /** The end if the attempt wins. */
  readonly next: View<T>;
  readonly temp: string;
  readonly bytes: Uint8Array;
  readonly id: string;
  readonly sync: boolean;
}

/**
 * A chain of states that deletes its old slots. Each number is won once, and the numbers only grow.
 */
export class RollingChain<T> {
  protected readonly staging: Staging;
  protected readonly rollover: EpochRollover<T>;
  protected readonly collector: EpochCollector<T>;
  readonly #files: ChainFiles<T>;
  readonly #options: RollingChainOptions<T>;
  readonly #sync: boolean;
  readonly #epochKind: RecordKind<Epoch<T>>;
  readonly #end: ChainEnd<T>;
  /** Callers of this process append one after another: in a race, each would stage and sync slots that it loses. */
  readonly #turns = new Fifo();
  /** All slots up to here are known to be durable. */
  #durable: { readonly epoch: number; readonly slot: number } = { epoch: 0, slot: 0 };

  protected constructor(staging: Staging, directory: string, options: RollingChainOptions<T>) {
    const { disk } = staging;
    this.staging = staging;
    this.#options = options;
    // Without a boot id a process cannot tell whether processes that saw a number are still alive.
    this.#sync = options.sync !== false || disk.volume.kind !== "local" || !isKnownBoot(options.bootId);
    const { bootId, slotsPerEpoch, deltas } = options;
    /** Returns true if slots of the chain may be deltas: older releases refuse it. */
    const hasDeltas = deltas !== undefined;
    const kind = slotKind(options.kind, { hasDeltas });
    this.#epochKind = epochKind(options.kind, { hasDeltas });
    const epochs = new Chain(staging, `${directory}/epochs`, this.#epochKind);
    const slots = new Slots(disk, directory, { kind, deltas }, (epoch) => this.#mayGiveUp(epoch));
    this.#files = { staging, directory, epochs, slots, slotKind: kind };
    this.rollover = new EpochRollover(this.#files, { sync: this.#sync, bootId, slotsPerEpoch, hasDeltas });
    this.#end = new ChainEnd(this.#files, this.rollover);
    this.collector = new EpochCollector(disk, directory, epochs);
  }

  /**
   * Opens a chain and creates it if it does not exist. An existing chain can be read on a disk that
   * is not writable. Throws CORRUPT and NEWER_FORMAT.
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
   * Repairs a chain that is CORRUPT: it continues from the newest readable state, its numbers jump,
   * and damaged epoch records are moved aside. Call it only while no other process uses the chain.
   */
  static async repair<T>(
    staging: Staging,
    directory: string,
    options: RollingChainOptions<T>,
    moveAside: (path: string) => Promise<unknown>,
  ): Promise<void> {
    const chain = new this(staging, directory, options);
    await repairChain({
      files: chain.#files,
      openEpochs: () => new Chain(staging, `${directory}/epochs`, chain.#epochKind),
      rollover: chain.rollover,
      initial: options.initial,
      moveAside,
    });
  }

  /**
   * Appends the state that `change` derives from the newest one; nothing if it returns undefined.
   * `change` may be called several times, also with a state that turns out to be void, so it must
   * have no effects. The returned entry is won permanently.
   *
   * Throws RESOURCE_BUSY after 1,000 lost races, OUTCOME_UNKNOWN and CORRUPT.
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
      const view = await this.#end.getToAppend();
      if (view.slot >= view.epoch.body.slots) {
        await this.#end.rollOver(view);
        continue;
      }
      const number = view.epoch.body.from + view.slot + 1;
      const paths = keepAs?.() ?? [];
      const state = change(view.state, number);
      if (state === undefined) {
        if (await this.#isNewest(view)) return undefined;
        continue;
      }
      this.#options.check?.(state, view.state);
      const isChecked = this.#options.check !== undefined;
      const { synced } = view.epoch.body;
      const slot = this.slotFor(view, { id, number, state }, { mustStandAlone: sync && !synced });
      const bytes = encodeRecord(this.#files.slotKind, slot, { isChecked, bytesMax: slotBytesMax });
      const next = afterSlot(view, slot, state, bytes.length);
      const isSynced = sync || synced;
      // Each attempt gets a new temp file: a file that may have been linked must never be written
      // again.
      const { temp, kept } = await this.#stage(bytes, { sync: isSynced, paths });
      let won = false;
      try {
        won = await this.#win({ after: view, next, temp, bytes, id, sync: isSynced });
      } finally {
        // Remove them even after a failure: leftovers must not fill a full disk.
        for (const path of new Set([temp, ...kept]))
          if (!won || !kept.includes(path)) await discard(this.staging, path);
      }
      if (!won) continue;
      if (number % numbersPerCollection === 0) this.collector.collectInBackground();
      return { number, state };
    }
    const message = `${this.#files.directory}: lost the race for the next number ${attemptsMax} times. Nothing was written: try again later.`;
    throw holdfastError("RESOURCE_BUSY", message, { path: this.#files.directory, blockedBy: [], worthWaiting: true });
  }

  protected slotFor(view: View<T>, made: WholeSlot<T>, options: { readonly mustStandAlone: boolean }): Slot<T> {
    return slotFor(this.#options.deltas, view, made, options);
  }

  /**
   * Creates the file that becomes the slot, and the files to keep. A single kept file is the slot
   * itself if that is small; a large slot would stay on disk as long as the kept file does.
   */
  async #stage(
    bytes: Uint8Array,
    { sync, paths }: { readonly sync: boolean; readonly paths: readonly string[] },
  ): Promise<{ readonly temp: string; readonly kept: readonly string[] }> {
    if (paths.length === 1 && bytes.length <= keptBytesMax)
      return { temp: await stage(this.staging, bytes, { sync, path: paths[0] }), kept: paths };
    const temp = await stage(this.staging, bytes, { sync });
    try {
      await allEnded(paths.map((path) => stage(this.staging, new Uint8Array(), { sync: false, path })));
      return { temp, kept: paths };
    } catch (error) {
      for (const path of [temp, ...paths]) await discard(this.staging, path);
      throw error;
    }
  }

  /**
   * Continues with `deltas` in a chain that was created without them. Older releases refuse the chain
   * afterwards.
   */
  async upgrade(id: string): Promise<void> {
    await this.#turns.take();
    try {
      if (!this.#end.canWrite) await this.#begin();
      await this.#end.upgrade(() => this.#append(id, (state) => state, {}));
    } finally {
      this.#turns.give();
    }
  }

  /** Returns true if slots of the chain may be deltas. Older releases refuse such a chain. */
  async hasDeltas(): Promise<boolean> {
    return (await this.#end.get()).epoch.body.deltas === true;
  }

  /** Returns the newest visible state. If slots are synced, it is durable. Throws CORRUPT. */
  async read(): Promise<RollingEntry<T>> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const view = await this.#end.findAfter(await this.#end.get());
      this.#end.known = view;
      if (view === undefined) continue;
      if (view.epoch.body.synced) await this.settleShown(view);
      const entry = { number: view.epoch.body.from + view.slot, state: view.state };
      // Check after reading, not before: a slot that was linked late into a collected epoch looks
      // like any other.
      if ((await this.#isOpenToRead(view)) || !(await this.#end.leave(view))) return entry;
    }
    throw damagedEpochs(this.#files.directory, 'has lost its "open" file');
  }

  /**
   * Returns true if the newest entry that this process knows still exists unchanged. False: the
   * directory was replaced or restored to an older state, and the next append would leave a gap.
   */
  async isStanding(): Promise<boolean> {
    const view = this.#end.known;
    if (view === undefined) return true;
    const { epoch, slot, state } = view;
    try {
      if (slot === 0) return (await this.#files.epochs.get(epoch.number)).id === epoch.id;
      const found = await getRecord(this.staging.disk, this.#files.slotKind, this.#files.slots.pathOf(view, slot));
      const shown = "state" in found ? found.state : (await this.#files.slots.findAt(startOf(epoch), slot))?.state;
      return isDeepStrictEqual(shown, state);
    } catch (error) {
      // A stale handle proves nothing.
      if (hasErrno(error, "ESTALE")) return true;
      if (!hasErrno(error, "ENOENT")) throw error;
      // If others continued since, the epoch was collected.
      return ((await this.#files.epochs.last())?.number ?? 0) > epoch.number;
    }
  }

  /**
   * Deletes the slots of epochs in which no process can win any more, and returns the number of
   * those epochs.
   */
  async collect(): Promise<number> {
    return await this.collector.collect();
  }

  /** Waits until no background collection is in progress. Call it before you close the ground of the chain. */
  async settled(): Promise<void> {
    await this.collector.settled();
  }

  /** True if everything in this epoch still counts. Only true proves anything. */
  protected async isOpen(view: View<T>): Promise<boolean> {
    const path = `${this.#files.slots.pathOf(view)}/open`;
    const { disk } = this.staging;
    return disk.volume.kind === "local" ? await disk.canOpen(path) : await canLinkFrom(this.staging, path);
  }

  /**
   * Like `isOpen`, for a reader. A process that cannot write on a share can only open the file, and
   * that answer may be stale.
   */
  async #isOpenToRead(view: View<T>): Promise<boolean> {
    try {
      return await this.isOpen(view);
    } catch (error) {
      if (!isUnwritable(error)) throw error;
      return await this.staging.disk.canOpen(`${this.#files.slots.pathOf(view)}/open`);
    }
  }

  /** Makes sure that there is an epoch in which this process can win a slot. */
  async #begin(): Promise<void> {
    await ensureDirectory(this.staging.disk, `${this.#files.directory}/epochs`);
    await this.rollover.begin(this.#options.initial);
    this.#end.canWrite = true;
  }

  /**
   * True also if a newer epoch is named: then another process gave this one up, and the next search
   * finds the newer one.
   */
  async #mayGiveUp({ number }: ChainEntry<Epoch<T>>): Promise<boolean> {
    if (((await this.#files.epochs.last())?.number ?? 0) > number) return true;
    return (await this.#options.mayGiveUp?.()) ?? true;
  }

  async #exists(): Promise<boolean> {
    try {
      return (await this.#files.epochs.last()) !== undefined;
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return false;
      throw error;
    }
  }

  /**
   * Makes the epoch record durable, then the slot. The epoch record is synced even where slots are
   * not: the process that named it may not have synced it yet, and its numbers would be reused
   * after a power cut.
   */
  protected async makeDurable(view: View<T>, sync: boolean): Promise<void> {
    await this.#files.epochs.makeDurable(view.epoch.number);
    if (sync) await syncNames(this.staging.disk, this.#files.slots.pathOf(view));
  }

  /**
   * Makes a slot durable before it is shown: its winner may not have synced it yet, and a power cut
   * must not take back what was shown. Only on a local disk: names on a share are durable when the
   * server replies, and another client cannot ask for more.
   */
  protected async settleShown(view: View<T>): Promise<void> {
    if (this.staging.disk.volume.kind !== "local" || this.#isKnownDurable(view)) return;
    try {
      await this.makeDurable(view, true);
    } catch (error) {
      // The epoch was collected since. `isOpen` reports that next, and the caller reads the newest
      // epoch instead.
      if (hasErrno(error, "ENOENT")) return;
      throw error;
    }
    this.#durable = { epoch: view.epoch.number, slot: view.slot };
  }

  #isKnownDurable({ epoch, slot }: View<T>): boolean {
    return epoch.number < this.#durable.epoch || (epoch.number === this.#durable.epoch && slot <= this.#durable.slot);
  }

  /** True if this append has won its slot permanently. */
  async #win({ after, next, temp, bytes, id, sync }: Attempt<T>): Promise<boolean> {
    const path = this.#files.slots.pathOf(next, next.slot);
    let linked = false;
    try {
      linked = await linkOnce(this.staging.disk, temp, path, bytes, { mayRepeat: true });
      if (!linked) {
        this.#end.known = await this.#end.findAfterLosing(after);
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
    // Unknown: while this process slept, the epoch was completed and collected. If the link won, all later states build
    // on it.
    this.#end.known = undefined;
    let counts: boolean | undefined;
    try {
      counts = await this.#options.counts((await this.read()).state, id);
    } catch (error) {
      // An unreadable chain must be repaired first.
      throw isHoldfastError(error, "CORRUPT", "NEWER_FORMAT") ? error : this.#inDoubt(id, path, error);
    }
    if (counts === undefined) throw this.#inDoubt(id, path, undefined);
    return counts;
  }

  #inDoubt(id: string, path: string, cause: unknown): Error {
    const message = `The reply was lost, so the append ${id} may or may not count. Read the chain before you retry: its state shows whether it counts.`;
    return holdfastError("OUTCOME_UNKNOWN", message, { path }, cause);
  }

  /** True if `view` is the newest state and still counts: the caller acts on a refusal. */
  async #isNewest(view: View<T>): Promise<boolean> {
    const newest = await this.#end.findAfter(view);
    if (newest?.epoch.number === view.epoch.number && newest.slot === view.slot) {
      if (await this.isOpen(view)) return true;
      await this.#end.leave(view);
    } else this.#end.known = newest;
    return false;
  }
}

/** Returns the end after `view` once `slot`, a record of `bytes`, is won. */
function afterSlot<T>(view: View<T>, slot: Slot<T>, state: T, bytes: number): View<T> {
  const made = { epoch: view.epoch, slot: view.slot + 1, state };
  return "state" in slot ? { ...made, whole: made.slot, bytes } : { ...made, whole: slot.whole, bytes: slot.bytes };
}
