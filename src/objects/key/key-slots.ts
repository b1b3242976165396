// KeySlots performs the steps on the disk that win a slot of one key. KeyChain puts them in order.
//
// The first slot is removed before all others and never created again. A link therefore counts if
// the first slot still exists afterwards.
import { parentOf } from "../../durable/publish/directory.ts";
import { isStillThere, linkOnce } from "../../durable/publish/publish.ts";
import { assertNotSwept } from "../../durable/publish/staging.ts";
import { randomName } from "../../format/id.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { SlotEntry } from "../model/damaged-entry.ts";
import { endKey } from "./dying-key.ts";
import { KeyNames } from "./key-names.ts";
import type { KeyStorage, KeySlot, StagedEntry } from "./key-storage.ts";
import { moveIntoPlace } from "./prepared-directory.ts";

export class KeySlots {
  readonly names: KeyNames;
  protected readonly storage: KeyStorage;
  /**
   * The last entry whose name this process knows to be durable, with all names before it and that
   * of the key.
   */
  #durable: KeySlot | undefined;

  constructor(storage: KeyStorage, directory: string) {
    this.names = new KeyNames(directory, storage.slotsPerBlock);
    this.storage = storage;
  }

  /** True for the last entry of a key: nothing may follow it. */
  isLast(entry: SlotEntry): boolean {
    return entry.kind === "closed";
  }

  /** Random, so that no name of a removed key is ever reused. */
  newIncarnation(): string {
    return randomName(this.storage.staging.random.bytes(16));
  }

  /**
   * Creates the key: its directory appears with the first slot in it. `before` runs in parallel
   * with the preparation and completes before the directory appears. Returns false if another
   * process created the key.
   */
  async create(incarnation: string, staged: StagedEntry, before: () => Promise<void>): Promise<boolean> {
    const { directory: target } = this.names;
    const name = this.names.nameOf(incarnation, 1);
    const onMissing = (error: unknown): Promise<void> => this.#makeShard(error);
    return await moveIntoPlace(this.storage, { target, name, staged }, { before, onMissing });
  }

  /**
   * Links the entry under a number, or begins a block with it. Returns false if the number is
   * taken, undefined if the key is gone.
   */
  async win({ incarnation, number }: KeySlot, staged: StagedEntry): Promise<boolean | undefined> {
    try {
      if (!this.names.isFirst(number)) return await this.link(this.names.slotPath(incarnation, number), staged);
      const target = this.names.blockPath(incarnation, this.names.blockOf(number));
      return await moveIntoPlace(this.storage, { target, name: this.names.nameOf(incarnation, number), staged });
    } catch (error) {
      if (!hasErrno(error, "ENOENT")) throw error;
      // ENOENT also occurs if this process slept and its staged file was swept.
      await assertNotSwept(this.storage.staging, parentOf(staged.temp));
      return undefined;
    }
  }

  /** Links the staged file. Returns false if the name is taken. */
  async link(path: string, { temp, proof }: StagedEntry): Promise<boolean> {
    return await linkOnce(this.storage.staging.disk, temp, path, proof, { mayRepeat: true, isPrefix: true });
  }

  /**
   * True if the file that was linked under this number counts, because neither the key nor the
   * block had been removed. Call it after the link.
   */
  async counts({ incarnation, number }: KeySlot): Promise<boolean> {
    const { staging } = this.storage;
    const block = this.names.blockOf(number);
    if (block > 0 && !this.names.isFirst(number)) {
      const first = this.names.slotPath(incarnation, this.names.firstOf(block));
      if (!(await isStillThere(staging, first))) return false;
    }
    return await isStillThere(staging, this.names.slotPath(incarnation, 1));
  }

  /**
   * Syncs the name of this slot, or of the key if it is the first one. All names before it must be
   * durable.
   */
  async sync({ incarnation, number }: KeySlot): Promise<void> {
    const { directory } = this.names;
    if (number === 1) await this.storage.sync(parentOf(directory), shardsOf(directory));
    else if (this.names.isFirst(number)) await this.storage.sync(directory);
    else await this.storage.sync(this.names.blockPath(incarnation, this.names.blockOf(number)));
  }

  /** Makes an entry of another process, and all entries before it, durable. */
  async makeDurable({ incarnation, number }: KeySlot): Promise<void> {
    const known = this.#durable?.incarnation === incarnation ? this.#durable : undefined;
    if (known !== undefined && number <= known.number) return;
    const { directory } = this.names;
    const block = this.names.blockPath(incarnation, this.names.blockOf(number));
    const isBlockKnown = known !== undefined && this.names.blockOf(known.number) === this.names.blockOf(number);
    const above = known === undefined ? [directory, parentOf(directory), shardsOf(directory)] : [directory];
    try {
      await this.storage.sync(...new Set(isBlockKnown ? [block] : [block, ...above]));
      this.#durable = { incarnation, number };
    } catch (error) {
      // The key is gone; the following link detects it.
      if (!hasErrno(error, "ENOENT", "ESTALE")) throw error;
    }
  }

  /** Records that this entry and all before it are durable; undefined forgets what was durable. */
  setDurable(slot: KeySlot | undefined): void {
    this.#durable = slot;
  }

  /** Removes the key, whose last entry closes it. */
  async end(incarnation: string): Promise<void> {
    await endKey(this.storage, this.names, incarnation);
  }

  /**
   * Creates the directory of the shard, but never the one above it: if that is missing, the bucket
   * is deleted.
   */
  async #makeShard(cause: unknown): Promise<void> {
    const { staging } = this.storage;
    // On a local disk, the failed rename proved that its source exists, so this session was not
    // swept.
    if (staging.disk.volume.kind !== "local") await assertNotSwept(staging, await staging.directory());
    try {
      await staging.disk.mkdir(parentOf(this.names.directory));
    } catch (error) {
      if (hasErrno(error, "ENOENT")) throw cause;
      if (!hasErrno(error, "EEXIST")) throw error;
    }
  }
}

/** Returns the directory of all shards. */
function shardsOf(directory: string): string {
  return parentOf(parentOf(directory));
}
