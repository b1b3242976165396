// Which index answers for which position now: a merged one if there is one, else that of the segment, made of the log if need be.
import { closed, IndexStore, type IndexStoreOptions } from "./index-store.ts";
import type { SealedSegment } from "./indexed-line.ts";
import type { HashedItem } from "./key-hash.ts";
import type { SealedIndex } from "./file/sealed-index.ts";
import { findActiveOf, type FindActive } from "./build/segment-image.ts";
import { childrenOf, getSpan, planOf, type MergeRange } from "./merge-range.ts";
import { UnusableIndex } from "./unusable-index.ts";

/** A file that fails may have been replaced: it is opened again. Failing twice, it is made anew; failing even then, it is kept in memory. */
const faultsOfFile = 2;
const faultsOfDisk = 3;
const mergeTriesMax = 3;

export interface BuildOptions {
  /** Without the segment that was sealed last: somebody else is about to make its index. */
  readonly butNewest?: boolean | undefined;
}

export class IndexSet {
  readonly #store: IndexStore;
  readonly #findActive: FindActive | undefined;
  readonly #segments: SealedSegment[] = [];
  readonly #open = new Map<string, SealedIndex>();
  /** Not looked for again until something has changed. */
  readonly #absent = new Set<string>();
  readonly #faults = new Map<string, number>();
  readonly #underWay = new Map<string, Promise<unknown>>();
  #plan: readonly MergeRange[] = [];
  /** How many wait for an index: whatever is made for them gives way to nobody. */
  #awaited = 0;
  #isClosed = false;

  constructor(options: IndexStoreOptions) {
    this.#store = new IndexStore({
      ...options,
      pause: async () => (this.#awaited > 0 ? undefined : options.pause?.()),
    });
    this.#findActive = options.findActive;
  }

  /** The positions of the first and last event; `last` is `first - 1` when there is none. */
  get first(): number {
    return this.#segments[0]?.first ?? 1;
  }

  get last(): number {
    return this.#segments.at(-1)?.last ?? 0;
  }

  add(segment: SealedSegment): void {
    if (this.#segments.length > 0 && segment.first !== this.last + 1)
      throw new RangeError(
        `Segment ${segment.number} with position ${segment.first} does not follow position ${this.last}.`,
      );
    this.#segments.push(segment);
    this.#plan = planOf(this.#segments);
    // Whoever sealed it may have merged others.
    this.#absent.clear();
  }

  /** The index that covers a position. Reads the log when there is no usable one. */
  async indexAt(position: number): Promise<SealedIndex> {
    this.#awaited++;
    try {
      return await this.#indexAt(position);
    } finally {
      this.#awaited--;
    }
  }

  async #indexAt(position: number): Promise<SealedIndex> {
    for (let look = 1; ; look++) {
      let span = getSpan(this.#plan, position);
      for (;;) {
        const index = await this.#find(span);
        if (index !== undefined) return index;
        if (span.level === 0) break;
        span = getSpan(childrenOf(span), position);
      }
      if (look > 1) return this.#index(span);
      // Perhaps another process has merged it and removed it since we looked for the merged one.
      this.#absent.clear();
    }
  }

  /** Says that an index turned out unusable. Nothing happens if it is not in use any more: then it was only closed. */
  async discard(index: SealedIndex): Promise<void> {
    const { name } = index;
    if (this.#open.get(name) !== index) return;
    this.#open.delete(name);
    this.#faults.set(name, this.#faultsOf(name) + 1);
    await index.close();
  }

  /** True when it is known without reading that nothing after `after` matches. */
  excludes(items: readonly HashedItem[], after: number): boolean {
    return this.#plan.every((span) => this.#excludes(span, items, after));
  }

  /** Writes what is missing, merges, and removes what a merged one covers. Resolves too where nothing can be written. One that is under way is joined. */
  async build({ butNewest = false }: BuildOptions = {}): Promise<void> {
    await this.#once("build", () => this.#build(butNewest));
  }

  /** Whoever builds is told CLOSED. */
  endMerges(): void {
    this.#store.endMerges();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.endMerges();
    await Promise.allSettled([...this.#underWay.values()]);
    await Promise.all([...this.#open.values()].map((index) => index.close()));
    this.#open.clear();
  }

  async #build(butNewest: boolean): Promise<void> {
    const plan = this.#plan;
    const newest = this.#segments.at(-1);
    this.#store.isWritable = true;
    this.#absent.clear();
    for (const span of plan)
      if (this.#store.isWritable) await (butNewest ? this.#makeBut(newest, span) : this.#make(span));
    // Not those of the newest merge: a reader that has not heard of the last segment yet would look for its parts, and make them again.
    const isDone = ({ level, segments, name }: MergeRange): boolean =>
      level > 0 && segments.at(-1) !== newest && this.#open.has(name);
    if (this.#store.isWritable) await this.#store.removeParts(plan.filter(isDone));
  }

  async #find(span: MergeRange): Promise<SealedIndex | undefined> {
    this.#mustBeOpen();
    const { name } = span;
    const open = this.#open.get(name);
    if (open !== undefined) return open;
    if (this.#absent.has(name) || this.#faultsOf(name) >= faultsOfFile) return undefined;
    return this.#once(`find ${name}`, () => this.#openFile(span));
  }

  async #openFile(span: MergeRange): Promise<SealedIndex | undefined> {
    const index = await this.#store.findFile(span);
    if (index === undefined) this.#absent.add(span.name);
    return index && this.#hold(index);
  }

  /** Of one segment, by reading it. */
  async #index(span: MergeRange): Promise<SealedIndex> {
    return this.#once(`index ${span.name}`, async () => {
      const inMemory = this.#faultsOf(span.name) >= faultsOfDisk;
      return this.#hold(await this.#store.makeIndex(span, { inMemory }));
    });
  }

  /** Undefined for a merge that cannot be written now, or whose parts keep failing. */
  async #make(span: MergeRange): Promise<SealedIndex | undefined> {
    const found = await this.#find(span);
    if (found !== undefined) return found;
    if (span.level === 0) return this.#index(span);
    for (let tries = 1; tries <= mergeTriesMax; tries++) {
      const parts: SealedIndex[] = [];
      for (const child of childrenOf(span)) {
        const part = await this.#make(child);
        if (part === undefined || !this.#store.isWritable) return undefined;
        parts.push(part);
      }
      if (await this.#merge(span, parts)) return this.#openFile(span);
    }
    return undefined;
  }

  /** All of a span that does not need the index of `newest`; the span itself if somebody has made it: then its parts may be gone. */
  async #makeBut(newest: SealedSegment | undefined, span: MergeRange): Promise<void> {
    if (span.segments.at(-1) !== newest) return void (await this.#make(span));
    if ((await this.#find(span)) !== undefined) return;
    for (const child of childrenOf(span)) if (this.#store.isWritable) await this.#makeBut(newest, child);
  }

  /** False when a part failed: it is made anew before the next try. */
  async #merge(span: MergeRange, parts: readonly SealedIndex[]): Promise<boolean> {
    try {
      await this.#store.merge(span, parts);
      // It is another file now, with one failure left to it.
      this.#faults.set(span.name, Math.min(this.#faultsOf(span.name), faultsOfFile - 1));
      return true;
    } catch (error) {
      if (!(error instanceof UnusableIndex)) throw error;
      const part = parts.find(({ name }) => name === error.index);
      if (part !== undefined) await this.discard(part);
      return false;
    }
  }

  /** From now on this one answers, and no longer those that it covers or replaces; who is reading one of them is told that it is closed, and comes here again. */
  async #hold(index: SealedIndex): Promise<SealedIndex> {
    if (this.#isClosed) await index.close();
    this.#mustBeOpen();
    const covered = [...this.#open].filter(([, other]) => other !== index && isInside(other, index));
    for (const [name] of covered) this.#open.delete(name);
    this.#open.set(index.name, index);
    for (const [, other] of covered) await other.close();
    return index;
  }

  #excludes(span: MergeRange, items: readonly HashedItem[], after: number): boolean {
    if (span.last <= after || span.last < span.first) return true;
    const active = span.level === 0 ? findActiveOf(span, this.#findActive) : undefined;
    if (active !== undefined) return !active.hasCandidateByHash(items, after);
    const index = this.#open.get(span.name);
    if (index !== undefined) return index.excludes(items);
    return span.level > 0 && childrenOf(span).every((child) => this.#excludes(child, items, after));
  }

  #faultsOf(name: string): number {
    return this.#faults.get(name) ?? 0;
  }

  /** Several who need the same thing at the same time wait for one. */
  #once<T>(what: string, action: () => Promise<T>): Promise<T> {
    const running = this.#underWay.get(what);
    if (running !== undefined) return running as Promise<T>;
    const result = action().finally(() => this.#underWay.delete(what));
    this.#underWay.set(what, result);
    return result;
  }

  #mustBeOpen(): void {
    if (this.#isClosed) throw closed();
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
