// Slots: reads what was won in the epochs of a rolling chain.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { slotName } from "../../format/name.ts";
import { isTorn, recordBytesMax, type RecordKind } from "../../format/record.ts";
import type { Disk } from "../../ports/disk.ts";
import { findHighestSlot, findSlot, type Slot, type View } from "./epoch.ts";

export class Slots<T> {
  readonly #disk: Disk;
  /** Where the directories of the epochs are. */
  readonly #directory: string;
  readonly #kind: RecordKind<Slot<T>>;
  readonly #mayGiveUp: (epoch: View<T>["epoch"]) => Promise<boolean>;

  constructor(
    disk: Disk,
    directory: string,
    kind: RecordKind<Slot<T>>,
    mayGiveUp: (epoch: View<T>["epoch"]) => Promise<boolean>,
  ) {
    this.#disk = disk;
    this.#directory = directory;
    this.#kind = kind;
    this.#mayGiveUp = mayGiveUp;
  }

  /** The path of an epoch's directory, or of a slot in it. */
  pathOf({ epoch }: Pick<View<T>, "epoch">, slot?: number): string {
    const directory = `${this.#directory}/${epoch.body.directory}`;
    return slot === undefined ? directory : `${directory}/${slotName(slot)}`;
  }

  /**
   * The end of this epoch as far as it can be seen, from `view` on; undefined when the epoch is
   * gone.
   */
  async findEnd(view: View<T>): Promise<View<T> | undefined> {
    return this.#disk.volume.kind === "local" ? await this.#findEndByNames(view) : await this.findEndByListing(view);
  }

  /**
   * By a listing: on a network mount each name that was looked for in vain would be remembered as
   * absent.
   */
  async findEndByListing(view: View<T>): Promise<View<T> | undefined> {
    const slot = await findHighestSlot(this.#disk, this.pathOf(view));
    if (slot === undefined || slot <= view.slot) return slot === undefined ? undefined : view;
    return await this.findAt(view, slot);
  }

  /**
   * By names alone, in growing steps and then in halves: slots have no gaps, a look costs no round
   * trip here, and only the last one has to be read.
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
   * Undefined when there is no such slot, or when the epoch is gone; also for one that is torn
   * where slots are not synced and the epoch may be given up. A machine that runs shows each slot
   * whole, so the file system went away under the processes that had won, and came back without
   * what was not on the disk yet: what they won counts no more. While one of them is alive,
   * something else tore the slot, and that is damage.
   */
  async findAt(view: View<T>, slot: number): Promise<View<T> | undefined> {
    const path = this.pathOf(view, slot);
    const found = await findSlot(this.#disk, this.#kind, path).catch(async (error: unknown) => {
      const mayBeTorn = !view.epoch.body.synced && isHoldfastError(error, "CORRUPT");
      if (mayBeTorn && (await this.#isTorn(path)) && (await this.#mayGiveUp(view.epoch))) return undefined;
      throw error;
    });
    if (found === undefined) return undefined;
    if (found.number === view.epoch.body.from + slot) return { ...view, slot, state: found.state };
    const message = `${path} says that it is number ${found.number}: it was copied or renamed. Restore it from a backup.`;
    throw holdfastError("CORRUPT", message, { path });
  }

  async #isTorn(path: string): Promise<boolean> {
    return isTorn(await this.#disk.readFile(path, recordBytesMax));
  }

  /** The highest slot up to that of `view` that can be read, or the base of its epoch. */
  async highestReadable(view: View<T>): Promise<View<T>> {
    for (let slot = view.slot; slot > 0; slot--) {
      try {
        const found = await this.findAt(view, slot);
        if (found !== undefined) return found;
      } catch (error) {
        // Torn by a power cut: an older state is only older.
        if (!isHoldfastError(error, "CORRUPT")) throw error;
      }
    }
    return { ...view, slot: 0, state: view.epoch.body.base };
  }
}
