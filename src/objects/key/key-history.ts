// KeyHistory: the versions of a key, as its entries tell when they are read in order.
import { Fifo } from "../../durable/wait/fifo.ts";
import { holdfastError } from "../../errors.ts";
import type { Disk } from "../../ports/disk.ts";
import type { KeyEntry, StoredRetention, VersionEntry } from "../model/entry.ts";
import { isDropped } from "./dropped-block.ts";
import { findSlot, isSlotThere, type SlotContent } from "./entry-file.ts";
import type { KeyHead } from "./key-head.ts";
import type { KeyNames } from "./key-names.ts";

/** So many slots are read at the same time. */
const readsAtOnce = 16;
/** A version that was put longer ago is found by reading all entries, which are remembered. */
const readOneMax = 32;

/** A version or a delete marker that is there, with what was changed about it since. */
export interface KeyVersion {
  readonly slot: number;
  readonly entry: VersionEntry;
  readonly bodyAt: number;
  readonly tags: Readonly<Record<string, string>>;
  readonly retention: StoredRetention | undefined;
  readonly legalHold: boolean | undefined;
  readonly acl: string | undefined;
}

export class KeyHistory {
  readonly #disk: Disk;
  readonly #names: KeyNames;
  /** One reader at a time: each goes on where the one before it has ended. */
  readonly #turns = new Fifo();
  #incarnation = "";
  #number = 0;
  #isInDoubt = false;
  /** By slot, in ascending order. */
  #versions = new Map<number, KeyVersion>();
  /** How many dropped blocks were passed over. */
  #dropped = 0;

  constructor(disk: Disk, names: KeyNames) {
    this.#disk = disk;
    this.#names = names;
  }

  /** How many versions are remembered. */
  get size(): number {
    return this.#versions.size;
  }

  /** What was read is not what is there any more: the next reader begins anew. */
  doubt(): void {
    this.#isInDoubt = true;
  }

  /** The version in this slot, as of what was read last. */
  find(slot: number): KeyVersion | undefined {
    return this.#versions.get(slot);
  }

  /**
   * All versions as of `head` or a later entry, the newest last. Undefined when the newest entry has
   * to be found anew: the key is another one by now, or a block of it was dropped since. A slot that
   * is gone while its block is there is CORRUPT.
   */
  async read(head: KeyHead): Promise<readonly KeyVersion[] | undefined> {
    await this.#turns.take();
    try {
      if (this.#isInDoubt || this.#incarnation !== head.incarnation) this.#forget(head.incarnation);
      const dropped = this.#dropped;
      while (this.#number < head.number)
        if (!(await this.#readOn(head))) {
          this.#forget("");
          return undefined;
        }
      if (dropped === this.#dropped) return [...this.#versions.values()];
      // What made a block superfluous may have come after `head`.
      await this.#forgetDropped();
      return undefined;
    } finally {
      this.#turns.give();
    }
  }

  /**
   * The version in `slot`, which lives at `head`, without reading what came before it. Undefined when
   * the newest entry has to be found anew.
   */
  async readOne(head: KeyHead, slot: number): Promise<KeyVersion | undefined> {
    const isRead = !this.#isInDoubt && this.#incarnation === head.incarnation && this.#number >= slot;
    if (!isRead && head.number - slot < readOneMax) {
      const versions = new Map<number, KeyVersion>();
      const numbers = Array.from({ length: head.number - slot }, (_, index) => slot + index);
      for (const [index, found] of (await this.#readSlots(head, [...numbers, head.number])).entries())
        if (found !== undefined) applyEntry(versions, slot + index, found.entry, found.bodyAt);
      const version = versions.get(slot);
      if (version !== undefined) return version;
    }
    // Also tells why it is not there.
    return (await this.read(head)) && this.find(slot);
  }

  async #readSlots(head: KeyHead, numbers: readonly number[]): Promise<(SlotContent | undefined)[]> {
    const { incarnation, number } = head;
    return await Promise.all(
      numbers.map(async (each) =>
        each === number
          ? head
          : this.#mustBeOf(head, each, await findSlot(this.#disk, this.#names.slotPath(incarnation, each))),
      ),
    );
  }

  /** False when the newest entry has to be found anew. */
  async #readOn(head: KeyHead): Promise<boolean> {
    const first = this.#number + 1;
    const count = Math.min(head.number - this.#number, readsAtOnce);
    const numbers = Array.from({ length: count }, (_, index) => first + index);
    for (const [index, slot] of (await this.#readSlots(head, numbers)).entries()) {
      if (slot === undefined) return await this.#passOver(head, first + index);
      this.#number = first + index;
      applyEntry(this.#versions, this.#number, slot.entry, slot.bodyAt);
    }
    return true;
  }

  /**
   * All versions of a dropped block are gone, also those that were read before. The entry that says
   * so may have been dropped with another block.
   */
  async #forgetDropped(): Promise<void> {
    const blocks = new Set([...this.#versions.keys()].map((slot) => this.#names.blockOf(slot)));
    const gone = new Set<number>();
    for (const block of blocks)
      if (await isDropped(this.#disk, { names: this.#names, incarnation: this.#incarnation, block })) gone.add(block);
    for (const slot of this.#versions.keys()) if (gone.has(this.#names.blockOf(slot))) this.#versions.delete(slot);
  }

  #forget(incarnation: string): void {
    this.#isInDoubt = false;
    this.#incarnation = incarnation;
    this.#number = 0;
    this.#versions = new Map();
  }

  /** CORRUPT when the slot has an entry of another key. */
  #mustBeOf({ incarnation, entry }: KeyHead, number: number, slot: SlotContent | undefined): SlotContent | undefined {
    if (slot === undefined || slot.entry.key === entry.key) return slot;
    const path = this.#names.slotPath(incarnation, number);
    const message = `${path} has an entry of the key ${JSON.stringify(slot.entry.key)}: it was copied or renamed. Restore it from a backup.`;
    throw holdfastError("CORRUPT", message, { path });
  }

  /**
   * The slot with this number is missing. True when its block was dropped. False when the key is
   * gone; otherwise CORRUPT.
   */
  async #passOver({ incarnation, number: newest }: KeyHead, number: number): Promise<boolean> {
    const block = this.#names.blockOf(number);
    const isBlockGone = await isDropped(this.#disk, { names: this.#names, incarnation, block });
    if (!(await isSlotThere(this.#disk, this.#names.slotPath(incarnation, 1)))) return false;
    if (isBlockGone) {
      // The newest block is never dropped: an entry of this one is not the newest any more.
      if (this.#names.lastOf(block) >= newest) return false;
      this.#number = this.#names.lastOf(block);
      this.#dropped++;
      return true;
    }
    const path = this.#names.slotPath(incarnation, number);
    const message = `${path} is missing, and entries behind it are there. Restore it from a backup, or have the store verified.`;
    throw holdfastError("CORRUPT", message, { path });
  }
}

function applyEntry(versions: Map<number, KeyVersion>, slot: number, entry: KeyEntry, bodyAt: number): void {
  if (entry.kind === "put" || entry.kind === "marker") {
    if (entry.isNull) removeNull(versions);
    versions.set(slot, { slot, entry, bodyAt, ...attributesOf(entry) });
  } else if (entry.kind === "stub") {
    if (entry.isNull) removeNull(versions);
  } else if (entry.kind === "remove") for (const each of entry.slots) versions.delete(each);
  else if (entry.kind === "change") {
    const version = versions.get(entry.slot);
    if (version !== undefined) versions.set(entry.slot, { ...version, ...changesOf(version, entry) });
  }
}

/** A null version takes the place of the one before it. */
function removeNull(versions: Map<number, KeyVersion>): void {
  for (const [slot, { entry }] of versions) if (entry.isNull) versions.delete(slot);
}

type Attributes = Pick<KeyVersion, "tags" | "retention" | "legalHold" | "acl">;

export function attributesOf(entry: VersionEntry): Attributes {
  if (entry.kind === "marker") return { tags: {}, retention: undefined, legalHold: undefined, acl: undefined };
  const { tags, retention, legalHold, acl } = entry;
  return { tags, retention, legalHold, acl };
}

function changesOf(before: Attributes, entry: KeyEntry & { readonly kind: "change" }): Attributes {
  const { tags = before.tags, retention = before.retention, legalHold = before.legalHold, acl = before.acl } = entry;
  return { tags, retention: retention ?? undefined, legalHold, acl };
}
