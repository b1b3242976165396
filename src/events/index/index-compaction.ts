// Index files made, merged, and removed when a merged one covers them. Only a cache: what fails
// here is made when a reader needs it.
import { UnusableIndex } from "./file/index-blocks.ts";
import type { SealedIndex } from "./file/sealed-index.ts";
import type { IndexSet } from "./index-set.ts";
import type { IndexStore } from "./index-store.ts";
import type { SealedSegment } from "./keys/indexed-line.ts";
import { childrenOf, type MergeRange } from "./merge-range.ts";

const mergeTriesMax = 3;

export interface BuildOptions {
  /** Without the segment that was sealed last: another process is about to make its index. */
  readonly butNewest?: boolean | undefined;
}

export class IndexCompaction {
  readonly #set: IndexSet;
  readonly #store: IndexStore;

  constructor(set: IndexSet, store: IndexStore) {
    this.#set = set;
    this.#store = store;
  }

  /** Resolves also where nothing can be written. A call joins a build that is under way. CLOSED. */
  async build({ butNewest = false }: BuildOptions = {}): Promise<void> {
    await this.#set.once("build", () => this.#build(butNewest));
  }

  async #build(butNewest: boolean): Promise<void> {
    const { plan, newest } = this.#set;
    this.#store.isWritable = true;
    this.#set.lookAgain();
    for (const range of plan)
      if (this.#store.isWritable) await (butNewest ? this.#makeBut(newest, range) : this.#make(range));
    // Not the parts of the newest merge: a reader that does not know the last segment yet would
    // make them again.
    const isDone = (range: MergeRange): boolean =>
      range.level > 0 && range.segments.at(-1) !== newest && this.#set.isOpen(range);
    if (this.#store.isWritable) await this.#store.removeParts(plan.filter(isDone));
  }

  /** Undefined for a merge that cannot be written now, or with parts that keep failing. */
  async #make(range: MergeRange): Promise<SealedIndex | undefined> {
    const found = await this.#set.find(range);
    if (found !== undefined) return found;
    if (range.level === 0) return this.#set.makeIndex(range);
    for (let tries = 1; tries <= mergeTriesMax; tries++) {
      const parts: SealedIndex[] = [];
      for (const child of childrenOf(range)) {
        const part = await this.#make(child);
        if (part === undefined || !this.#store.isWritable) return undefined;
        parts.push(part);
      }
      if (await this.#merge(range, parts)) return this.#set.openFile(range);
    }
    return undefined;
  }

  /**
   * All of a range that does not need the index of `newest`. If the merged one exists, its parts
   * may be gone.
   */
  async #makeBut(newest: SealedSegment | undefined, range: MergeRange): Promise<void> {
    if (range.segments.at(-1) !== newest) return void (await this.#make(range));
    if ((await this.#set.find(range)) !== undefined) return;
    for (const child of childrenOf(range)) if (this.#store.isWritable) await this.#makeBut(newest, child);
  }

  /** False when a part failed: it is made anew before the next try. */
  async #merge(range: MergeRange, parts: readonly SealedIndex[]): Promise<boolean> {
    try {
      await this.#store.merge(range, parts);
      this.#set.forgive(range);
      return true;
    } catch (error) {
      if (!(error instanceof UnusableIndex)) throw error;
      const part = parts.find(({ name }) => name === error.index);
      if (part !== undefined) await this.#set.discard(part);
      return false;
    }
  }
}
