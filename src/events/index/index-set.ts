// Selects the index that serves a position: a merged one, or that of its segment, which is built
// from the log if necessary.
import type { SealedIndex } from "./file/sealed-index.ts";
import { findActiveOf, type FindActive } from "./build/segment-image.ts";
import { closedError, type IndexStore } from "./index-store.ts";
import type { SealedSegment } from "./keys/indexed-line.ts";
import type { HashedItem } from "./keys/key-hash.ts";
import { childrenOf, getRange, planOf, type MergeRange } from "./merge-range.ts";

/**
 * A file that failed once is opened again, because it may have been replaced. After two failures it is built again;
 * after three the index stays in memory.
 */
const faultsOfFile = 2;
const faultsOfDisk = 3;

export class IndexSet {
  readonly #store: IndexStore;
  readonly #findActive: FindActive | undefined;
  readonly #segments: SealedSegment[] = [];
  readonly #open = new Map<string, SealedIndex>();
  /** Files that were not found. They are searched again only after something has changed. */
  readonly #absent = new Set<string>();
  readonly #faults = new Map<string, number>();
  readonly #underWay = new Map<string, Promise<unknown>>();
  #plan: readonly MergeRange[] = [];
  /** Number of callers that wait for an index. While there are any, builds do not pause. */
  #waiters = 0;
  #isClosed = false;

  constructor(store: IndexStore, findActive: FindActive | undefined) {
    this.#store = store;
    this.#findActive = findActive;
  }

  /** The positions of the first and last event; `last` is `first - 1` if there is none. */
  get first(): number {
    return this.#segments[0]?.first ?? 1;
  }

  get last(): number {
    return this.#segments.at(-1)?.last ?? 0;
  }

  get newest(): SealedSegment | undefined {
    return this.#segments.at(-1);
  }

  /** The largest ranges that cover all segments, in order. */
  get plan(): readonly MergeRange[] {
    return this.#plan;
  }

  get isAwaited(): boolean {
    return this.#waiters > 0;
  }

  add(segment: SealedSegment): void {
    if (this.#segments.length > 0 && segment.first !== this.last + 1)
      throw new RangeError(
        `Segment ${segment.number} with position ${segment.first} does not follow position ${this.last}.`,
      );
    this.#segments.push(segment);
    this.#plan = planOf(this.#segments);
    // The process that sealed the segment may have merged others.
    this.forgetAbsences();
  }

  /** Allows another search for files that were not found. */
  forgetAbsences(): void {
    this.#absent.clear();
  }

  /** Returns the index that covers a position. Reads the log if no usable one exists. */
  async indexAt(position: number): Promise<SealedIndex> {
    this.#waiters++;
    try {
      return await this.#indexAt(position);
    } finally {
      this.#waiters--;
    }
  }

  async #indexAt(position: number): Promise<SealedIndex> {
    for (let look = 1; ; look++) {
      let range = getRange(this.#plan, position);
      for (;;) {
        const index = await this.find(range);
        if (index !== undefined) return index;
        if (range.level === 0) break;
        range = getRange(childrenOf(range), position);
      }
      if (look > 1) return this.makeIndex(range);
      // Another process may have merged the file and removed it after this one looked for the merged index.
      this.forgetAbsences();
    }
  }

  async find(range: MergeRange): Promise<SealedIndex | undefined> {
    this.#mustBeOpen();
    const { name } = range;
    const open = this.#open.get(name);
    if (open !== undefined) return open;
    if (this.#absent.has(name) || this.#faultsOf(name) >= faultsOfFile) return undefined;
    return this.once(`find ${name}`, () => this.openFile(range));
  }

  isOpen({ name }: MergeRange): boolean {
    return this.#open.has(name);
  }

  async openFile(range: MergeRange): Promise<SealedIndex | undefined> {
    const index = await this.#store.findFile(range);
    if (index === undefined) this.#absent.add(range.name);
    return index && this.#hold(index);
  }

  /** Builds the index of one segment by reading it. */
  async makeIndex(range: MergeRange): Promise<SealedIndex> {
    return this.once(`make ${range.name}`, async () => {
      const inMemory = this.#faultsOf(range.name) >= faultsOfDisk;
      return this.#hold(await this.#store.makeIndex(range, { inMemory }));
    });
  }

  /** Drops an unusable index. If another one has replaced it, it is only closed. */
  async discard(index: SealedIndex): Promise<void> {
    const { name } = index;
    if (this.#open.get(name) !== index) return;
    this.#open.delete(name);
    this.#faults.set(name, this.#faultsOf(name) + 1);
    await index.close();
  }

  /** A new file has this name, so one failure is forgiven. */
  forgive({ name }: MergeRange): void {
    this.#faults.set(name, Math.min(this.#faultsOf(name), faultsOfFile - 1));
  }

  /** True if memory alone proves that no event after `after` matches. */
  excludes(items: readonly HashedItem[], after: number): boolean {
    return this.#plan.every((range) => this.#excludes(range, items, after));
  }

  #excludes(range: MergeRange, items: readonly HashedItem[], after: number): boolean {
    if (range.last <= after || range.last < range.first) return true;
    const active = range.level === 0 ? findActiveOf(range, this.#findActive) : undefined;
    if (active !== undefined) return !active.hasCandidateByHash(items, after);
    const index = this.#open.get(range.name);
    if (index !== undefined) return index.excludes(items);
    return range.level > 0 && childrenOf(range).every((child) => this.#excludes(child, items, after));
  }

  /** Runs `action` once for concurrent callers that ask for the same `what`. */
  once<T>(what: string, action: () => Promise<T>): Promise<T> {
    const running = this.#underWay.get(what);
    if (running !== undefined) return running as Promise<T>;
    const result = action().finally(() => this.#underWay.delete(what));
    this.#underWay.set(what, result);
    return result;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#store.endMerges();
    await Promise.allSettled([...this.#underWay.values()]);
    await Promise.all([...this.#open.values()].map((index) => index.close()));
    this.#open.clear();
    await this.#store.close();
  }

  /**
   * From now on this index serves reads. Those that it covers or replaces are closed: their readers get UnusableIndex
   * and call `indexAt` again.
   */
  async #hold(index: SealedIndex): Promise<SealedIndex> {
    if (this.#isClosed) await index.close();
    this.#mustBeOpen();
    const covered = [...this.#open].filter(([, other]) => other !== index && isInside(other, index));
    for (const [name] of covered) this.#open.delete(name);
    this.#open.set(index.name, index);
    for (const [, other] of covered) await other.close();
    return index;
  }

  #faultsOf(name: string): number {
    return this.#faults.get(name) ?? 0;
  }

  #mustBeOpen(): void {
    if (this.#isClosed) throw closedError();
  }
}

function isInside(inner: SealedIndex, outer: SealedIndex): boolean {
  const [a, b] = [inner.coverage.segments, outer.coverage.segments];
  return (
    a.length <= b.length &&
    (a[0]?.number ?? 0) >= (b[0]?.number ?? 0) &&
    (a.at(-1)?.number ?? 0) <= (b.at(-1)?.number ?? 0)
  );
}
