// The index of all sealed segments: asked as one, kept in files that are made, merged and replaced without any answer changing.
import type { Items } from "../model/query.ts";
import { pagesOf } from "./file/index-query.ts";
import type { IndexStoreOptions } from "./index-store.ts";
import type { LinePlace, Range, SealedSegment } from "./indexed-line.ts";
import { hashId, hashItems, type HashedItem } from "./key-hash.ts";
import type { FindActive } from "./build/segment-image.ts";
import { IndexSet, type BuildOptions } from "./index-set.ts";
import { UnusableIndex } from "./unusable-index.ts";

/**
 * Positions are given out by hash: the caller confirms each against its line. None is ever missing: what an index file cannot answer, whatever is wrong with it, is
 * answered by reading the log, and the file is replaced. Failures of `scan` are the caller's own and pass through. CLOSED after `close`.
 */
export class SealedIndexes {
  readonly #shelf: IndexSet;
  readonly #findActive: FindActive | undefined;

  constructor(options: IndexStoreOptions) {
    this.#findActive = options.findActive;
    this.#shelf = new IndexSet(options);
  }

  /** The positions of the first and last event; `last` is `first - 1` when there is none. */
  get first(): number {
    return this.#shelf.first;
  }

  get last(): number {
    return this.#shelf.last;
  }

  /** In order. Nothing is read or written yet. */
  add(segment: SealedSegment): void {
    this.#shelf.add(segment);
  }

  /** In order, without duplicates; newest first when `backwards`. */
  candidates(items: Items, range: Range, backwards: boolean): AsyncIterable<number> {
    return this.#candidates(hashItems(items), range, backwards);
  }

  idCandidates(id: string): AsyncIterable<number> {
    return this.#candidates(hashId(id), { after: this.first - 1, upTo: this.last }, false);
  }

  /** True when the filters in memory already say that nothing after `after` matches. False says nothing: ask for candidates, which also loads the filters. */
  excludes(items: Items, after: number): boolean {
    return after >= this.last || this.#shelf.excludes(hashItems(items), after);
  }

  /** RangeError for a position that is not here. */
  async placeOf(position: number): Promise<LinePlace> {
    const active = this.#findActive?.(position);
    if (active !== undefined) return active.placeOf(position);
    for (;;) {
      const index = await this.#shelf.indexAt(position);
      try {
        return await index.getLine(position);
      } catch (error) {
        if (!(error instanceof UnusableIndex)) throw error;
        await this.#shelf.discard(index);
      }
    }
  }

  /** Makes the files that are missing and merges them. Resolves too where they cannot be written: then they are kept in memory. */
  async build(options?: BuildOptions): Promise<void> {
    await this.#shelf.build(options);
  }

  endMerges(): void {
    this.#shelf.endMerges();
  }

  async close(): Promise<void> {
    await this.#shelf.close();
  }

  async *#candidates(items: readonly HashedItem[], range: Range, backwards: boolean): AsyncGenerator<number, void> {
    let after = Math.max(range.after, this.first - 1);
    let upTo = Math.min(range.upTo, this.last);
    const isDoneWith = (position: number): void => {
      if (backwards) upTo = position - 1;
      else after = position;
    };
    while (after < upTo) {
      const at = backwards ? upTo : after + 1;
      const active = this.#findActive?.(at);
      if (active !== undefined) {
        yield* active.candidatesByHash(items, { after, upTo }, backwards);
        isDoneWith(backwards ? active.first : active.last);
        continue;
      }
      const index = await this.#shelf.indexAt(at);
      try {
        for await (const page of pagesOf(index, items, { after, upTo }, backwards)) {
          yield* page;
          isDoneWith(page.at(-1) as number);
        }
        isDoneWith(backwards ? index.first : index.last);
      } catch (error) {
        if (!(error instanceof UnusableIndex)) throw error;
        // Goes on behind the last page that was whole, with another index.
        await this.#shelf.discard(index);
      }
    }
  }
}
