// KeyVersions derives the versions of a key, and its unreadable slots, from entries applied in
// order.
//
// An unreadable entry may be a version, or may change earlier ones. It is therefore kept as a slot
// that may hold a version until a later entry proves the contrary. Entries of kind `remove` and
// `change` name the current version, which is the newest living one: damaged slots after it hold
// none.
import { mayBeNull, mayChangeOthers, type DamagedSlot } from "../model/damaged-entry.ts";
import type { KeyEntry, StoredRetention, VersionEntry } from "../model/entry.ts";
import type { FoundSlot } from "./entry-file.ts";

/** A living version or delete marker, with later changes applied. */
export interface KeyVersion {
  readonly slot: number;
  readonly entry: VersionEntry;
  readonly bodyAt: number;
  readonly tags: Readonly<Record<string, string>>;
  readonly retention: StoredRetention | undefined;
  readonly legalHold: boolean | undefined;
  /** Undefined means private. Also undefined if an unreadable entry may have changed it. */
  readonly acl: string | undefined;
  /** An unreadable later entry that may have changed or removed this version. */
  readonly doubt?: DamagedSlot;
}

/** The content of a key as it was after one of its entries. */
export interface KeyContent {
  /** Oldest first. */
  readonly versions: readonly KeyVersion[];
  /** Unreadable slots that may hold a version, oldest first. */
  readonly damaged: readonly DamagedSlot[];
  /** All unreadable slots, except those that a later entry removed by number. */
  readonly unread: readonly DamagedSlot[];
}

export class KeyVersions {
  /** The living versions by slot, in ascending order. */
  readonly #versions = new Map<number, KeyVersion>();
  readonly #damaged = new Map<number, DamagedSlot>();
  readonly #unread = new Map<number, DamagedSlot>();

  get size(): number {
    return this.#versions.size;
  }

  /** True if there is an unreadable entry that no later entry removed. */
  get hasDamage(): boolean {
    return this.#unread.size > 0;
  }

  get content(): KeyContent {
    const [versions, damaged, unread] = [this.#versions, this.#damaged, this.#unread];
    return { versions: [...versions.values()], damaged: [...damaged.values()], unread: [...unread.values()] };
  }

  slots(): IterableIterator<number> {
    return this.#versions.keys();
  }

  find(slot: number): KeyVersion | undefined {
    return this.#versions.get(slot);
  }

  findDamaged(slot: number): DamagedSlot | undefined {
    return this.#damaged.get(slot);
  }

  remove(slot: number): void {
    for (const map of this.#all) map.delete(slot);
  }

  apply(slot: number, { entry, bodyAt }: FoundSlot, path: string): void {
    if (entry.kind === "damaged") this.#applyDamaged({ slot, path, entry });
    else if (entry.kind === "put" || entry.kind === "marker") {
      if (entry.isNull) this.#removeNull();
      this.#versions.set(slot, { slot, entry, bodyAt, ...attributesOf(entry) });
    } else if (entry.kind === "stub") {
      if (entry.isNull) this.#removeNull();
    } else if (entry.kind === "remove") {
      for (const each of entry.slots) this.remove(each);
      this.#removeBehind(entry.current);
    } else if (entry.kind === "change") {
      const version = this.#versions.get(entry.slot);
      if (version !== undefined) this.#versions.set(entry.slot, { ...version, ...changesOf(version, entry) });
      this.#removeBehind(entry.current);
    }
  }

  get #all(): readonly Map<number, unknown>[] {
    return [this.#versions, this.#damaged, this.#unread];
  }

  #applyDamaged(damaged: DamagedSlot): void {
    this.#damaged.set(damaged.slot, damaged);
    this.#unread.set(damaged.slot, damaged);
    if (!mayChangeOthers(damaged.entry)) return;
    for (const [slot, version] of this.#versions)
      this.#versions.set(slot, { ...version, acl: undefined, doubt: damaged });
  }

  /**
   * The writer of this entry could read the slots that are damaged now, or knew that they hold no
   * version.
   */
  #removeBehind(current: number): void {
    for (const slot of this.#damaged.keys()) if (slot > current) this.#damaged.delete(slot);
  }

  /** A null version replaces the previous one. */
  #removeNull(): void {
    for (const [slot, { entry }] of this.#versions) if (entry.isNull) this.#versions.delete(slot);
    for (const [slot, { entry }] of this.#damaged) if (entry.legible.isNull === true) this.#damaged.delete(slot);
  }
}

export const noContent: KeyContent = { versions: [], damaged: [], unread: [] };

/** Returns the current version, or a damaged slot that may hold it. */
export function currentIn({ versions, damaged }: KeyContent): KeyVersion | DamagedSlot | undefined {
  const [version, slot] = [versions.at(-1), damaged.at(-1)];
  return (slot?.slot ?? 0) > (version?.slot ?? 0) ? slot : version;
}

/** Returns the slot of the version that is current after these slots are removed; 0 if none is left. */
export function currentSlotWithout({ versions, damaged }: KeyContent, removed: readonly number[]): number {
  const slots = [...versions, ...damaged].map(({ slot }) => slot).filter((slot) => !removed.includes(slot));
  return Math.max(0, ...slots);
}

/**
 * Finds a damaged slot that may hold the null version. If there is one, it is unknown which version
 * is the null version.
 */
export function findDamagedNull({ versions, damaged }: KeyContent): DamagedSlot | undefined {
  const known = versions.findLast(({ entry }) => entry.isNull)?.slot ?? 0;
  return damaged.findLast(({ slot, entry }) => slot > known && mayBeNull(entry));
}

export function isDamaged(found: KeyVersion | DamagedSlot | undefined): found is DamagedSlot {
  return found?.entry.kind === "damaged";
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
