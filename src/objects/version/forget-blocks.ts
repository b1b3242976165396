// Forgetting the dead versions of a key: blocks in which no version lives are dropped, when the
// entries that stay say all that must be known.
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { dropBlock, emptyBlock, isDropped, isEmpty, type BlockPlace } from "../key/dropped-block.ts";
import { findSlot } from "../key/entry-file.ts";
import type { OpenKey } from "../key/key-chains.ts";
import type { KeyHead } from "../key/key-head.ts";
import type { KeyVersion } from "../key/key-history.ts";
import type { KeyEntry, RemoveEntry } from "../model/entry.ts";
import { appendEntry } from "./append-entry.ts";
import type { BodyFiles } from "./body-parts.ts";

/** So many slots are read at the same time. */
const readsAtOnce = 16;
/** So many slots fit into the record of an entry. */
const slotsPerEntry = 2048;

export interface ForgetOptions {
  /**
   * A block is left alone when its last entry is younger, because its writer may be about to ask
   * whether it counts. Only to spare that writer an answer that it does not know.
   */
  readonly restMs: number;
}

/** Returns how many blocks were dropped. */
export async function forgetBlocks(bucket: OpenBucket, key: OpenKey, { restMs }: ForgetOptions): Promise<number> {
  const { chain, history } = key;
  const head = await chain.findHead();
  const versions = head && (await history.read(head));
  if (head === undefined || versions === undefined) return 0;
  const work = new Forgetting(bucket, key, head, versions);
  const dead = await work.findDead(bucket.place.nowMs() - restMs);
  if (dead.length === 0) return 0;
  if (!(await work.restate(dead.map(({ block }) => block)))) return 0;
  const { incarnation } = head;
  for (const { block, ids } of dead) await dropBlock(bucket.place, { names: chain.names, incarnation, block }, ids);
  return dead.length;
}

interface DeadBlock {
  readonly block: number;
  /** Of its entries. */
  readonly ids: readonly string[];
}

class Forgetting {
  readonly #bucket: OpenBucket;
  readonly #key: OpenKey;
  readonly #head: KeyHead;
  /** Slots of living versions. */
  readonly #living: ReadonlySet<number>;

  constructor(bucket: OpenBucket, key: OpenKey, head: KeyHead, versions: readonly KeyVersion[]) {
    this.#bucket = bucket;
    this.#key = key;
    this.#head = head;
    this.#living = new Set(versions.map(({ slot }) => slot));
  }

  /** The blocks that can be dropped. What another process has not completed is completed. */
  async findDead(untilMs: number): Promise<DeadBlock[]> {
    const { names } = this.#key.chain;
    const { disk } = this.#bucket.place;
    const withLiving = new Set([...this.#living].map((slot) => names.blockOf(slot)));
    const dead: DeadBlock[] = [];
    for (let block = 1; block < names.blockOf(this.#head.number); block++) {
      if (withLiving.has(block)) continue;
      const at = this.#at(block);
      if (await isDropped(disk, at)) {
        if (!(await isEmpty(disk, at))) await emptyBlock(disk, at);
        continue;
      }
      const entries = [...(await this.#entries(block)).values()];
      // One that was not read is known by no id.
      if (entries.length <= names.lastOf(block) - names.firstOf(block)) continue;
      if (await this.#canGo(entries, untilMs)) dead.push({ block, ids: entries.map(({ id }) => id) });
    }
    return dead;
  }

  /**
   * Says again which versions of all other blocks are gone: the entry that said so may lie in a dead
   * block. False when the key was removed meanwhile.
   */
  async restate(dead: readonly number[]): Promise<boolean> {
    const slots = await this.#findUnsaid(new Set(dead));
    for (let at = 0; at < slots.length; at += slotsPerEntry)
      if (!(await this.#remove(slots.slice(at, at + slotsPerEntry)))) return false;
    return true;
  }

  /** Slots of versions that are gone, in blocks that stay, which no entry of those blocks removes. */
  async #findUnsaid(dead: ReadonlySet<number>): Promise<number[]> {
    const gone = new Set<number>();
    const said = new Set<number>();
    for (let block = 0; block <= this.#key.chain.names.blockOf(this.#head.number); block++) {
      if (dead.has(block) || (await isDropped(this.#bucket.place.disk, this.#at(block)))) continue;
      for (const [slot, entry] of await this.#entries(block))
        if (entry.kind === "remove") for (const each of entry.slots) said.add(each);
        else if (entry.kind !== "change" && !this.#living.has(slot)) gone.add(slot);
    }
    return [...gone].filter((slot) => !said.has(slot));
  }

  async #remove(slots: readonly number[]): Promise<boolean> {
    const { place } = this.#bucket;
    const { incarnation, entry } = this.#head;
    const id = place.newId();
    let current = 0;
    const judge = async (head: KeyHead | undefined): Promise<"go on" | "again" | undefined> => {
      if (head?.incarnation !== incarnation) return undefined;
      const versions = await this.#key.history.read(head);
      current = versions?.at(-1)?.slot ?? 0;
      return versions === undefined ? "again" : "go on";
    };
    const make = (): RemoveEntry => {
      const config = this.#bucket.state.number;
      return { kind: "remove", id, key: entry.key, config, atMs: place.nowMs(), slots, current };
    };
    const added = await appendEntry(this.#bucket, entry.key, this.#key, { judge, make, isDependent: true });
    return added !== undefined;
  }

  #at(block: number): BlockPlace {
    return { names: this.#key.chain.names, incarnation: this.#head.incarnation, block };
  }

  async #canGo(entries: readonly KeyEntry[], untilMs: number): Promise<boolean> {
    for (const entry of entries) {
      if (entry.atMs > untilMs) return false;
      if (entry.kind === "change" && this.#living.has(entry.slot)) return false;
      // Its files must have gone before the last entry that names them.
      if (entry.kind === "put" && (await this.#hasFiles(entry))) return false;
    }
    return true;
  }

  async #hasFiles({ parts = [], partsIn }: BodyFiles): Promise<boolean> {
    const files = partsIn === undefined ? parts.map(({ file }) => file) : [partsIn];
    for (const file of files)
      if ((await this.#bucket.place.disk.findStat(this.#bucket.bodyPath(file))) !== undefined) return true;
    return false;
  }

  async #entries(block: number): Promise<Map<number, KeyEntry>> {
    const { names } = this.#key.chain;
    const { incarnation, number } = this.#head;
    const last = Math.min(names.lastOf(block), number);
    const entries = new Map<number, KeyEntry>();
    for (let first = names.firstOf(block); first <= last; first += readsAtOnce) {
      const numbers = Array.from({ length: Math.min(readsAtOnce, last - first + 1) }, (_, index) => first + index);
      const slots = await Promise.all(
        numbers.map((each) => findSlot(this.#bucket.place.disk, names.slotPath(incarnation, each))),
      );
      for (const [index, slot] of slots.entries()) if (slot !== undefined) entries.set(first + index, slot.entry);
    }
    return entries;
  }
}
