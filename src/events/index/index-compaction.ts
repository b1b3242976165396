// Builds and merges index files, and removes those that a merged one covers. Index files are only a cache: if one
// cannot be built here, it is built when a reader needs it.
import { UnusableIndex } from "./file/index-blocks.ts";
import type { SealedIndex } from "./file/sealed-index.ts";
import type { IndexSet } from "./index-set.ts";
import type { IndexStore } from "./index-store.ts";
import type { SealedSegment } from "./keys/indexed-line.ts";
import { childrenOf, levelMax, type MergeRange } from "./merge-range.ts";

const mergeTriesMax = 3;

export interface BuildOptions {
  /** Skips the newest sealed segment: another process is about to build its index. */
  readonly butNewest?: boolean | undefined;
}

export class IndexCompaction {
  readonly #set: IndexSet;
  readonly #store: IndexStore;
  /** For each level, the last call that works on it. */
  readonly #turns: Promise<unknown>[] = [];

  constructor(set: IndexSet, store: IndexStore) {
    this.#set = set;
    this.#store = store;
  }

  /**
   * Builds the missing index of each segment that no merged index covers. Resolves even if nothing can be written.
   * Throws CLOSED.
   */
  async indexSegments({ butNewest = false }: BuildOptions = {}): Promise<void> {
    this.#store.isWritable = true;
    this.#set.forgetAbsences();
    await this.#inTurn(0, butNewest);
  }

  /**
   * Performs the merges that are due, and removes the index files that they replace. Otherwise like `indexSegments`.
   */
  async merge({ butNewest = false }: BuildOptions = {}): Promise<void> {
    const { newest } = this.#set;
    for (let level = 1; level <= levelMax; level++) await this.#inTurn(level, butNewest);
    // Keep the files that the newest merge covers: a reader that does not know the last segment yet would build them
    // again.
    const merged = this.#merged(this.#set.plan).filter(({ segments }) => segments.at(-1) !== newest);
    if (this.#store.isWritable) await this.#store.removeParts(merged);
  }

  /**
   * Calls are serialized on each level, but levels are independent: a large merge takes minutes, and the small
   * indexes that pile up meanwhile would slow down every query.
   */
  async #inTurn(level: number, butNewest: boolean): Promise<void> {
    const turn = (this.#turns[level] ?? Promise.resolve()).then(() => {
      const { plan, newest } = this.#set;
      return this.#set.once(`level ${level}`, () => this.#makeLevel(plan, level, butNewest ? newest : undefined));
    });
    this.#turns[level] = turn.catch(() => undefined);
    await turn;
  }

  /** Builds what is missing on a level, except an index that needs segment `but`. */
  async #makeLevel(ranges: readonly MergeRange[], level: number, but: SealedSegment | undefined): Promise<void> {
    for (const range of ranges) {
      if (!this.#store.isWritable) return;
      // If a merged index exists, its parts may have been removed.
      if (range.level < level || (await this.#set.find(range)) !== undefined) continue;
      if (range.level > level) await this.#makeLevel(childrenOf(range), level, but);
      else if (range.segments.at(-1) !== but) await this.#make(range);
    }
  }

  #merged(ranges: readonly MergeRange[]): MergeRange[] {
    return ranges.flatMap((range) => {
      if (range.level === 0) return [];
      return this.#set.isOpen(range) ? [range] : this.#merged(childrenOf(range));
    });
  }

  /** Returns undefined if the merge cannot be written now, or if its parts keep failing. */
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

  /** Returns false if a part was unusable: it is built again before the next try. */
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
