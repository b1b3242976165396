// The index of all sealed segments, queried as one. Its files may be built, merged and replaced meanwhile; this
// changes no answer.
import type { Items } from "../model/query.ts";
import { pagesOf } from "./file/index-query.ts";
import { IndexCompaction, type BuildOptions } from "./index-compaction.ts";
import { IndexSet } from "./index-set.ts";
import { IndexStore, type IndexStoreOptions } from "./index-store.ts";
import type { LineAddress, PositionRange, SealedSegment } from "./keys/indexed-line.ts";
import { hashId, hashItems, type HashedItem } from "./keys/key-hash.ts";
import type { TimeRange } from "./keys/time-range.ts";
import type { FindActive } from "./build/segment-image.ts";
import { UnusableIndex } from "./file/index-blocks.ts";

/**
 * Finds candidates by hash. The caller compares each with its line. It never misses a match: if an index file is
 * unusable, the log is read and the file is replaced. Errors of `scan` pass through. Throws CLOSED after `close`.
 */
export class SealedIndexes {
  readonly #store: IndexStore;
  readonly #indexes: IndexSet;
  readonly #compaction: IndexCompaction;
  readonly #findActive: FindActive | undefined;

  constructor(options: IndexStoreOptions) {
    // A build pauses for other work, unless a caller waits for an index.
    const pause = async (): Promise<void> => (this.#indexes.isAwaited ? undefined : options.pause?.());
    this.#findActive = options.findActive;
    this.#store = new IndexStore({ ...options, pause });
    this.#indexes = new IndexSet(this.#store, options.findActive);
    this.#compaction = new IndexCompaction(this.#indexes, this.#store);
  }

  /** The positions of the first and last event; `last` is `first - 1` if there is none. */
  get first(): number {
    return this.#indexes.first;
  }

  get last(): number {
    return this.#indexes.last;
  }

  /** Adds the next sealed segment. Reads and writes nothing yet. */
  add(segment: SealedSegment): void {
    this.#indexes.add(segment);
  }

  /** In order, without duplicates; newest first if `backwards`. */
  candidates(items: Items, range: PositionRange, backwards: boolean): AsyncIterable<number> {
    return this.#candidates(hashItems(items), range, backwards);
  }

  idCandidates(id: string): AsyncIterable<number> {
    return this.#candidates(hashId(id), { after: this.first - 1, upTo: this.last }, false);
  }

  /**
   * True if memory alone proves that no event after `after` matches. False proves nothing:
   * `candidates` then answers, and loads the filters.
   */
  excludes(items: Items, after: number): boolean {
    return after >= this.last || this.#indexes.excludes(hashItems(items), after);
  }

  /** Throws a RangeError for a position that is not here. */
  async getLine(position: number): Promise<LineAddress> {
    const active = this.#findActive?.(position);
    if (active !== undefined) return active.getLine(position);
    for (;;) {
      const index = await this.#indexes.indexAt(position);
      try {
        return await index.getLine(position);
      } catch (error) {
        if (!(error instanceof UnusableIndex)) throw error;
        await this.#indexes.discard(index);
      }
    }
  }

  /**
   * Returns the times of a segment's events; undefined if they are unknown: it has no events, or
   * its index is of an earlier version.
   */
  async findTimes({ number, first, last }: SealedSegment): Promise<TimeRange | undefined> {
    if (last < first) return undefined;
    const active = this.#findActive?.(first);
    if (active !== undefined) return active.times;
    const { coverage, times } = await this.#indexes.indexAt(first);
    return times[coverage.segments.findIndex((segment) => segment.number === number)];
  }

  /** Like `IndexCompaction`. Indexes that cannot be written stay in memory. */
  async indexSegments(options?: BuildOptions): Promise<void> {
    await this.#compaction.indexSegments(options);
  }

  async merge(options?: BuildOptions): Promise<void> {
    await this.#compaction.merge(options);
  }

  async build(options?: BuildOptions): Promise<void> {
    await this.indexSegments(options);
    await this.merge(options);
  }

  /** A build in progress rejects with CLOSED. */
  endMerges(): void {
    this.#store.endMerges();
  }

  async close(): Promise<void> {
    await this.#indexes.close();
  }

  async *#candidates(
    items: readonly HashedItem[],
    range: PositionRange,
    backwards: boolean,
  ): AsyncGenerator<number, void> {
    // An id or a tag that is new usually matches nothing. This avoids awaiting each index below.
    if (this.#indexes.excludes(items, range.after)) return;
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
      const index = await this.#indexes.indexAt(at);
      try {
        for await (const page of pagesOf(index, items, { after, upTo }, backwards)) {
          yield* page;
          isDoneWith(page.at(-1) as number);
        }
        isDoneWith(backwards ? index.first : index.last);
      } catch (error) {
        if (!(error instanceof UnusableIndex)) throw error;
        // Continues after the last complete page, with another index.
        await this.#indexes.discard(index);
      }
    }
  }
}
