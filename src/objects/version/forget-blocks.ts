// Forgets dead versions: drops the blocks of a key that hold no living version. Before that, it
// makes sure that the remaining entries record everything that is still needed.
import type { OpenBucket } from "../bucket/open-bucket.ts";
import { dropBlock, emptyBlock, isDropped, isEmpty, type KeyBlock } from "../key/dropped-block.ts";
import { findSlotOrDamage } from "../key/entry-file.ts";
import { nothing, retry, type AddedHead } from "../key/key-chain.ts";
import type { OpenKey } from "../key/key-chains.ts";
import { currentSlotWithout, type KeyVersion } from "../key/key-versions.ts";
import type { SlotEntry } from "../model/damaged-entry.ts";
import type { KeyEntry } from "../model/entry.ts";
import type { BodyFiles } from "./body-files.ts";

/** How many slots are read in parallel. */
const readsAtOnce = 16;
/** How many slots fit into the record of an entry. */
const slotsPerEntry = 2048;

export interface ForgetOptions {
  /**
   * A block whose last entry is younger than this is kept, because its writer may be about to check
   * whether the entry counts. This only spares that writer an OUTCOME_UNKNOWN.
   */
  readonly restMs: number;
}

/** Returns the number of dropped blocks. */
export async function forgetBlocks(bucket: OpenBucket, key: OpenKey, { restMs }: ForgetOptions): Promise<number> {
  const { chain, history } = key;
  const head = await chain.findHead();
  const content = head && (await history.read(head));
  // With an unreadable entry, nothing is dropped: it may be a living version, or other entries may
  // depend on it.
  if (head === undefined || head.entry.kind === "damaged" || content === undefined || content.unread.length > 0)
    return 0;
  const work = new Forgetting(bucket, key, { ...head, entry: head.entry }, content.versions);
  const dead = await work.findDead(bucket.storage.nowMs() - restMs);
  if (dead.length === 0) return 0;
  if (!(await work.restate(dead.map(({ block }) => block)))) return 0;
  const { incarnation } = head;
  for (const { block, ids } of dead) await dropBlock(bucket.storage, { names: chain.names, incarnation, block }, ids);
  return dead.length;
}

interface DeadBlock {
  readonly block: number;
  /** Ids of all its entries. */
  readonly ids: readonly string[];
}

class Forgetting {
  readonly #bucket: OpenBucket;
  readonly #key: OpenKey;
  readonly #head: AddedHead;
  /** Slots of living versions. */
  readonly #living: ReadonlySet<number>;

  constructor(bucket: OpenBucket, key: OpenKey, head: AddedHead, versions: readonly KeyVersion[]) {
    this.#bucket = bucket;
    this.#key = key;
    this.#head = head;
    this.#living = new Set(versions.map(({ slot }) => slot));
  }

  /**
   * Returns the blocks that can be dropped. Also finishes drops that other processes left
   * unfinished.
   */
  async findDead(untilMs: number): Promise<DeadBlock[]> {
    const { names } = this.#key.chain;
    const { disk } = this.#bucket.storage;
    const withLiving = new Set([...this.#living].map((slot) => names.blockOf(slot)));
    const dead: DeadBlock[] = [];
    for (let block = 1; block < names.blockOf(this.#head.number); block++) {
      if (withLiving.has(block)) continue;
      const at = this.#at(block);
      if (await isDropped(disk, at)) {
        if (!(await isEmpty(disk, at))) await emptyBlock(disk, at);
        continue;
      }
      const entries = [...(await this.#entries(block)).values()].filter((entry) => entry.kind !== "damaged");
      // A block with an unread entry stays: the id of that entry is unknown.
      if (entries.length <= names.lastOf(block) - names.firstOf(block)) continue;
      if (await this.#canGo(entries, untilMs)) dead.push({ block, ids: entries.map(({ id }) => id) });
    }
    return dead;
  }

  /**
   * Records again which versions in the remaining blocks were removed, because the original entry
   * may be in a dead block. Returns false if the key was removed meanwhile.
   */
  async restate(dead: readonly number[]): Promise<boolean> {
    const slots = await this.#findUnsaid(new Set(dead));
    for (let at = 0; at < slots.length; at += slotsPerEntry)
      if (!(await this.#remove(slots.slice(at, at + slotsPerEntry)))) return false;
    return true;
  }

  /** Slots of removed versions in the remaining blocks that no entry of those blocks removes. */
  async #findUnsaid(dead: ReadonlySet<number>): Promise<number[]> {
    const gone = new Set<number>();
    const said = new Set<number>();
    for (let block = 0; block <= this.#key.chain.names.blockOf(this.#head.number); block++) {
      if (dead.has(block) || (await isDropped(this.#bucket.storage.disk, this.#at(block)))) continue;
      for (const [slot, entry] of await this.#entries(block))
        if (entry.kind === "remove") for (const each of entry.slots) said.add(each);
        else if (entry.kind !== "change" && !this.#living.has(slot)) gone.add(slot);
    }
    return [...gone].filter((slot) => !said.has(slot));
  }

  async #remove(slots: readonly number[]): Promise<boolean> {
    const { storage } = this.#bucket;
    const { incarnation, entry } = this.#head;
    const id = storage.newId();
    const { key } = entry;
    const added = await this.#bucket.append(key, this.#key, async (newest) => {
      if (newest?.incarnation !== incarnation) return nothing;
      const content = await this.#key.history.read(newest);
      if (content === undefined) return retry;
      const [config, current] = [this.#bucket.state.number, currentSlotWithout(content, [])];
      return { add: { entry: { kind: "remove", id, key, config, atMs: storage.nowMs(), slots, current } } };
    });
    return added !== undefined;
  }

  #at(block: number): KeyBlock {
    return { names: this.#key.chain.names, incarnation: this.#head.incarnation, block };
  }

  async #canGo(entries: readonly KeyEntry[], untilMs: number): Promise<boolean> {
    for (const entry of entries) {
      if (entry.atMs > untilMs) return false;
      if (entry.kind === "change" && this.#living.has(entry.slot)) return false;
      // The block stays while files of the version exist: its entry is the last one that names
      // them.
      if (entry.kind === "put" && (await this.#hasFiles(entry))) return false;
    }
    return true;
  }

  async #hasFiles({ parts = [], partsIn }: BodyFiles): Promise<boolean> {
    const files = partsIn === undefined ? parts.map(({ file }) => file) : [partsIn];
    for (const file of files)
      if ((await this.#bucket.storage.disk.findStat(this.#bucket.bodyPath(file))) !== undefined) return true;
    return false;
  }

  async #entries(block: number): Promise<Map<number, SlotEntry>> {
    const { names } = this.#key.chain;
    const { incarnation, number } = this.#head;
    const last = Math.min(names.lastOf(block), number);
    const entries = new Map<number, SlotEntry>();
    for (let first = names.firstOf(block); first <= last; first += readsAtOnce) {
      const numbers = Array.from({ length: Math.min(readsAtOnce, last - first + 1) }, (_, index) => first + index);
      const slots = await Promise.all(
        numbers.map((each) => findSlotOrDamage(this.#bucket.storage.disk, names.slotPath(incarnation, each))),
      );
      for (const [index, slot] of slots.entries()) if (slot !== undefined) entries.set(first + index, slot.entry);
    }
    return entries;
  }
}
