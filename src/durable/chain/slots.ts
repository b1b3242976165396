// Slots reads the slots that were won in the epochs of a rolling chain.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { slotName } from "../../format/name.ts";
import type { RecordKind } from "../../format/record.ts";
import type { Disk } from "../../ports/disk.ts";
import { isTornRecord } from "../publish/record-file.ts";
import type { Staging } from "../publish/staging.ts";
import type { Chain } from "./chain.ts";
import { findHighestSlot, findSlot, startOf, type DeltaSlot, type Epoch, type Slot, type View } from "./epoch.ts";
import type { DeltaKind } from "./state-delta.ts";

/** The files of a rolling chain. */
export interface ChainFiles<T> {
  readonly staging: Staging;
  /** The parent of the epoch directories. */
  readonly directory: string;
  readonly epochs: Chain<Epoch<T>>;
  readonly slots: Slots<T>;
  readonly slotKind: RecordKind<Slot<T>>;
}

export class Slots<T> {
  readonly #disk: Disk;
  /** The parent of the epoch directories. */
  readonly #directory: string;
  readonly #kind: RecordKind<Slot<T>>;
  readonly #deltas: DeltaKind<T> | undefined;
  readonly #mayGiveUp: (epoch: View<T>["epoch"]) => Promise<boolean>;

  constructor(
    disk: Disk,
    directory: string,
    { kind, deltas }: { readonly kind: RecordKind<Slot<T>>; readonly deltas: DeltaKind<T> | undefined },
    mayGiveUp: (epoch: View<T>["epoch"]) => Promise<boolean>,
  ) {
    this.#disk = disk;
    this.#directory = directory;
    this.#kind = kind;
    this.#deltas = deltas;
    this.#mayGiveUp = mayGiveUp;
  }

  /** Returns the path of an epoch's directory, or of a slot in it. */
  pathOf({ epoch }: Pick<View<T>, "epoch">, slot?: number): string {
    const directory = `${this.#directory}/${epoch.body.directory}`;
    return slot === undefined ? directory : `${directory}/${slotName(slot)}`;
  }

  /** Returns the end of this epoch as far as it is visible, starting from `view`; undefined if the epoch is gone. */
  async findEnd(view: View<T>): Promise<View<T> | undefined> {
    return this.#disk.volume.kind === "local" ? await this.#findEndByNames(view) : await this.findEndByListing(view);
  }

  /** Uses a listing: a network mount would remember each probed name as absent. */
  async findEndByListing(view: View<T>): Promise<View<T> | undefined> {
    const slot = await findHighestSlot(this.#disk, this.pathOf(view));
    if (slot === undefined || slot <= view.slot) return slot === undefined ? undefined : view;
    return await this.findAt(view, slot);
  }

  /**
   * Probes names in growing steps, then by bisection: slots have no gaps, a probe costs no round
   * trip on a local disk, and only the last slot has to be read.
   */
  async #findEndByNames(view: View<T>): Promise<View<T> | undefined> {
    const isThere = (slot: number): Promise<boolean> => this.#disk.canOpen(this.pathOf(view, slot));
    let highest = view.slot;
    let absent = view.epoch.body.slots + 1;
    for (let step = 1; highest + step < absent; step *= 2) {
      if (await isThere(highest + step)) highest += step;
      else absent = highest + step;
    }
    while (highest + 1 < absent) {
      const middle = Math.floor((highest + absent) / 2);
      if (await isThere(middle)) highest = middle;
      else absent = middle;
    }
    return highest === view.slot ? view : await this.findAt(view, highest);
  }

  /**
   * Returns the state of a slot. If `view` is before that slot, the slots up to `view` need not be
   * read. Undefined if the slot, or one that its delta needs, is missing; see `#find`.
   */
  async findAt(view: View<T>, slot: number): Promise<View<T> | undefined> {
    const found = await this.#find(view, slot);
    if (found === undefined) return undefined;
    if ("state" in found) return { epoch: view.epoch, slot, state: found.state, whole: slot };
    let at = await this.#findBefore(view, slot, found);
    while (at !== undefined && at.slot < slot - 1) {
      const next = await this.#find(view, at.slot + 1);
      at = next === undefined ? undefined : this.#advance(at, next);
    }
    return at === undefined ? undefined : this.#advance(at, found);
  }

  /** Returns the nearest known state before a delta slot: that of `view`, or the last whole slot. */
  async #findBefore(view: View<T>, slot: number, { whole }: DeltaSlot): Promise<View<T> | undefined> {
    if (whole >= slot) throw this.#misplaced(view, slot, `its delta builds on slot ${whole}`);
    if (view.slot < slot && view.slot >= whole) return view;
    return whole === 0 ? startOf(view.epoch) : await this.findAt(view, whole);
  }

  /** Returns the state after `view`. */
  #advance(view: View<T>, next: Slot<T>): View<T> {
    const { epoch } = view;
    const slot = view.slot + 1;
    if ("state" in next) return { epoch, slot, state: next.state, whole: slot };
    try {
      if (this.#deltas === undefined) throw new TypeError("no deltas are expected here");
      return { epoch, slot, state: this.#deltas.apply(view.state, next.delta), whole: next.whole, bytes: next.bytes };
    } catch (cause) {
      throw this.#misplaced(view, slot, "its delta is invalid", cause);
    }
  }

  #misplaced(view: View<T>, slot: number, why: string, cause?: unknown): Error {
    const path = this.pathOf(view, slot);
    return holdfastError("CORRUPT", `${path} cannot be used: ${why}. Restore it from a backup.`, { path }, cause);
  }

  /**
   * Returns undefined if the slot or its epoch is missing, and also for a torn slot where slots are
   * not synced and the epoch may be given up. A running machine shows every slot whole. A torn one
   * means that the file system disappeared under the winners and came back without the unsynced
   * data, so their wins no longer count. While one of the winners is alive, something else tore the
   * slot: that is damage, and it throws.
   */
  async #find(view: View<T>, slot: number): Promise<Slot<T> | undefined> {
    const path = this.pathOf(view, slot);
    const found = await findSlot(this.#disk, this.#kind, path).catch(async (error: unknown) => {
      const isTorn = !view.epoch.body.synced && (await isTornRecord(this.#disk, path, error));
      if (isTorn && (await this.#mayGiveUp(view.epoch))) return undefined;
      throw error;
    });
    if (found === undefined || found.number === view.epoch.body.from + slot) return found;
    throw this.#misplaced(view, slot, `it contains number ${found.number}, so it was copied or renamed`);
  }

  /** Returns the highest readable slot up to that of `view`, or the base of its epoch. */
  async highestReadable(view: View<T>): Promise<View<T>> {
    for (let slot = view.slot; slot > 0; slot--) {
      try {
        const found = await this.findAt(view, slot);
        if (found !== undefined) return found;
      } catch (error) {
        // A power cut tore this slot. Use an older one: its state is only outdated.
        if (!isHoldfastError(error, "CORRUPT")) throw error;
      }
    }
    return startOf(view.epoch);
  }
}
