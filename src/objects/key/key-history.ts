// KeyHistory reads the entries of a key in order and derives its versions from them.
import { Fifo } from "../../durable/wait/fifo.ts";
import { holdfastError } from "../../errors.ts";
import type { Disk } from "../../ports/disk.ts";
import { hasDroppedRecord, isDropped } from "./dropped-block.ts";
import { damagedSlot, findSlotOrDamage, isSlotThere, type FoundSlot } from "./entry-file.ts";
import type { KeyHead } from "./key-head.ts";
import type { KeyNames } from "./key-names.ts";
import { KeyVersions, type KeyContent, type KeyVersion } from "./key-versions.ts";

/** How many slots are read in parallel. */
const readsAtOnce = 16;
/**
 * A version at most this far back is found by reading single slots. For an older one, all entries
 * are read and remembered.
 */
const readOneMax = 32;

export class KeyHistory {
  readonly #disk: Disk;
  readonly #names: KeyNames;
  /** The last reader. Readers are serialized, and each continues where the previous one stopped. */
  readonly #turns = new Fifo();
  #incarnation = "";
  #number = 0;
  #isInDoubt = false;
  #versions = new KeyVersions();
  /** How many dropped blocks were skipped. */
  #dropped = 0;

  constructor(disk: Disk, names: KeyNames) {
    this.#disk = disk;
    this.#names = names;
  }

  /** Number of versions in memory. */
  get size(): number {
    return this.#versions.size;
  }

  /**
   * Call it if the entries on the disk differ from those that were read: the next reader starts
   * over.
   */
  doubt(): void {
    this.#isInDoubt = true;
  }

  /** Returns the version in this slot, according to the last read. */
  find(slot: number): KeyVersion | undefined {
    return this.#versions.find(slot);
  }

  /**
   * Returns the content of the key as of `head` or a later entry. Undefined if the caller must find
   * the newest entry again: the key was replaced, or one of its blocks was dropped. A slot counts
   * as damaged if it is unreadable, or missing while its block exists.
   */
  async read(head: KeyHead): Promise<KeyContent | undefined> {
    await this.#turns.take();
    try {
      // Damaged slots are read again: they may have been restored since.
      const isOld = this.#isInDoubt || this.#versions.hasDamage;
      if (isOld || this.#incarnation !== head.incarnation) this.#forget(head.incarnation);
      const dropped = this.#dropped;
      while (this.#number < head.number)
        if (!(await this.#readOn(head))) {
          this.#forget("");
          return undefined;
        }
      if (dropped === this.#dropped) return this.#versions.content;
      // The entry that allowed a block to be dropped may be newer than `head`.
      await this.#forgetDropped();
      return undefined;
    } finally {
      this.#turns.give();
    }
  }

  /**
   * Returns the version in `slot`, which `head` names as living, without reading earlier entries.
   * Undefined if the caller must find the newest entry again. Throws the error of an unreadable
   * slot.
   */
  async readOne(head: KeyHead, slot: number): Promise<KeyVersion | undefined> {
    const isRead = !this.#isInDoubt && this.#incarnation === head.incarnation && this.#number >= slot;
    if (!isRead && head.number - slot < readOneMax) {
      const numbers = Array.from({ length: head.number - slot + 1 }, (_, index) => slot + index);
      const found = await this.#readSlots(head, numbers);
      const versions = new KeyVersions();
      if (found.every((each) => each !== undefined))
        for (const [index, each] of found.entries())
          versions.apply(slot + index, each, this.#names.slotPath(head.incarnation, slot + index));
      const version = versions.find(slot);
      if (version !== undefined) return version;
    }
    // A full read finds out why the slot is missing.
    if ((await this.read(head)) === undefined) return undefined;
    const damaged = this.#versions.findDamaged(slot);
    if (damaged !== undefined) throw damaged.entry.error;
    return this.find(slot);
  }

  async #readSlots(head: KeyHead, numbers: readonly number[]): Promise<(FoundSlot | undefined)[]> {
    const { incarnation, number } = head;
    return await Promise.all(
      numbers.map(async (each) =>
        each === number ? head : this.#ofThisKey(head, each, await this.#find(incarnation, each)),
      ),
    );
  }

  async #find(incarnation: string, number: number): Promise<FoundSlot | undefined> {
    return await findSlotOrDamage(this.#disk, this.#names.slotPath(incarnation, number));
  }

  /** Returns false if the caller must find the newest entry again. */
  async #readOn(head: KeyHead): Promise<boolean> {
    const first = this.#number + 1;
    const count = Math.min(head.number - this.#number, readsAtOnce);
    const numbers = Array.from({ length: count }, (_, index) => first + index);
    for (const [index, slot] of (await this.#readSlots(head, numbers)).entries()) {
      if (slot === undefined) return await this.#passOver(head, first + index);
      this.#apply(head, first + index, slot);
    }
    return true;
  }

  #apply({ incarnation }: KeyHead, number: number, slot: FoundSlot): void {
    this.#number = number;
    this.#versions.apply(number, slot, this.#names.slotPath(incarnation, number));
  }

  /**
   * Forgets all versions of dropped blocks, including those read before. They cannot be derived
   * from the entries: those that removed them may have been dropped with another block.
   */
  async #forgetDropped(): Promise<void> {
    const blocks = new Set([...this.#versions.slots()].map((slot) => this.#names.blockOf(slot)));
    const gone = new Set<number>();
    for (const block of blocks)
      if (await isDropped(this.#disk, { names: this.#names, incarnation: this.#incarnation, block })) gone.add(block);
    for (const slot of this.#versions.slots()) if (gone.has(this.#names.blockOf(slot))) this.#versions.remove(slot);
  }

  #forget(incarnation: string): void {
    this.#isInDoubt = false;
    this.#incarnation = incarnation;
    this.#number = 0;
    this.#versions = new KeyVersions();
  }

  /** Returns a damaged slot if the entry belongs to another key. */
  #ofThisKey({ incarnation, entry }: KeyHead, number: number, slot: FoundSlot | undefined): FoundSlot | undefined {
    if (slot === undefined || slot.entry.kind === "damaged" || entry.kind === "damaged") return slot;
    if (slot.entry.key === entry.key) return slot;
    const path = this.#names.slotPath(incarnation, number);
    const message = `${path} has an entry of the key ${JSON.stringify(slot.entry.key)}: it was copied or renamed. Restore it from a backup.`;
    return damagedSlot(holdfastError("CORRUPT", message, { path }));
  }

  /**
   * Handles a missing slot. Returns true if its block was dropped or the slot is lost, false if the
   * caller must find the newest entry again.
   */
  async #passOver(head: KeyHead, number: number): Promise<boolean> {
    const { incarnation, number: newest } = head;
    const at = { names: this.#names, incarnation, block: this.#names.blockOf(number) };
    // A block gets its record before it loses its first slot. Without a record, that slot is lost.
    const isBlockGone = (await isDropped(this.#disk, at)) && (await hasDroppedRecord(this.#disk, at));
    if (!(await isSlotThere(this.#disk, this.#names.slotPath(incarnation, 1)))) return false;
    if (isBlockGone) {
      // The newest block is never dropped, so `head` is no longer the newest entry.
      if (this.#names.lastOf(at.block) >= newest) return false;
      this.#number = this.#names.lastOf(at.block);
      this.#dropped++;
      return true;
    }
    const path = this.#names.slotPath(incarnation, number);
    // On a share, the client may have cached that the name was absent.
    const found = (await isSlotThere(this.#disk, path)) ? await this.#find(incarnation, number) : undefined;
    const message = `${path} is missing, but later entries exist. Restore it from a backup, or verify the store.`;
    const slot = this.#ofThisKey(head, number, found) ?? damagedSlot(holdfastError("CORRUPT", message, { path }));
    this.#apply(head, number, slot);
    return true;
  }
}
