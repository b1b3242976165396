// The index of the active segment, in memory only: a segment that still grows has no index file. It
// also serves a segment that was just sealed, until its index file is written.
import type { Items } from "../../model/query.ts";
import type { IndexedLine, LineAddress, PositionRange } from "../keys/indexed-line.ts";
import { KeyChains } from "./key-chains.ts";
import { hashId, hashItem, hashItems, hashOf, type HashedItem, type KeyHash, type KeyKind } from "../keys/key-hash.ts";
import { GrowingTimeRange, type TimeRange } from "../keys/time-range.ts";
import { LineTable } from "./line-table.ts";

/** Alternatives, by their key numbers; never empty. */
type KeyClause = readonly number[];
/** The lists of events to walk, and the clauses that an event found there must also match. */
interface Walk {
  readonly driver: KeyClause;
  readonly others: readonly KeyClause[];
}

/** Finds candidates by hash. The caller compares each with its line. It never misses a match. */
export class ActiveIndex {
  readonly first: number;
  readonly chains: KeyChains = new KeyChains();
  readonly lines: LineTable;
  readonly #times = new GrowingTimeRange();

  constructor(first: number) {
    this.first = first;
    this.lines = new LineTable(first);
  }

  /** `first - 1` if it is empty. */
  get last(): number {
    return this.first + this.chains.eventCount - 1;
  }

  /** Times of all events; undefined without events, or if unknown. */
  get times(): TimeRange | undefined {
    return this.#times.range;
  }

  /** Throws a RangeError for a line that does not follow the last one: every position after it would be wrong. */
  add(line: IndexedLine): void {
    if (line.keys.length === 0) return;
    if (line.first !== this.last + 1)
      throw new RangeError(`A line with position ${line.first} does not follow position ${this.last}.`);
    this.lines.add(line);
    this.#times.add(line.timeMs);
    for (const keys of line.keys) {
      this.chains.addEvent();
      for (const key of keys) this.chains.addKey(key);
    }
  }

  /** In order, without duplicates; newest first if `backwards`. */
  candidates(items: Items, range: PositionRange, backwards: boolean): Iterable<number> {
    return this.candidatesByHash(hashItems(items), range, backwards);
  }

  candidatesByHash(items: readonly HashedItem[], range: PositionRange, backwards: boolean): Iterable<number> {
    const after = Math.max(range.after, this.first - 1);
    const upTo = Math.min(range.upTo, this.last);
    if (items.some((item) => item.length === 0)) return counted(after, upTo, backwards);
    const walks = items
      .map((item) => this.#findWalk(item, after - this.first))
      .filter((walk): walk is Walk => walk !== undefined);
    const [walk] = walks;
    if (walk === undefined) return [];
    // A list already runs from the newest event to the oldest: a caller that wants the newest few pays only for
    // those.
    if (backwards && walks.length === 1 && walk.driver.length === 1) return this.#positions(walk, after, upTo);
    const found = Uint32Array.from(this.#union(walks, after - this.first, upTo - this.first)).sort();
    return this.#distinct(backwards ? found.reverse() : found);
  }

  idCandidates(id: string): Iterable<number> {
    return this.candidatesByHash(hashId(id), { after: this.first - 1, upTo: this.last }, false);
  }

  /**
   * True if an event after `after` may match. False is certain, and costs one lookup per key, however long the log
   * is.
   */
  hasCandidate(items: Items, after: number): boolean {
    const afterEvent = Math.max(after - this.first, -1);
    if (afterEvent >= this.chains.eventCount - 1) return false;
    return items.some((item) => this.#isPossible(item, afterEvent) && this.#hasMatch(hashItem(item), afterEvent));
  }

  hasCandidateByHash(items: readonly HashedItem[], after: number): boolean {
    const afterEvent = Math.max(after - this.first, -1);
    if (afterEvent >= this.chains.eventCount - 1) return false;
    return items.some((item) => this.#hasMatch(item, afterEvent));
  }

  /** Throws a RangeError for a position that is not here. */
  getLine(position: number): LineAddress {
    if (!(position >= this.first && position <= this.last))
      throw new RangeError(`Position ${position} is not between ${this.first} and ${this.last}.`);
    return this.lines.getLine(position);
  }

  /**
   * True if every clause of the item has a key that an event after `afterEvent` has. Allocates nothing; the result is
   * usually false.
   */
  #isPossible({ types, tags }: Items[number], afterEvent: number): boolean {
    for (const tag of tags) if (!this.#isRecent("tag", tag, afterEvent)) return false;
    return types.length === 0 || types.some((type) => this.#isRecent("type", type, afterEvent));
  }

  #isRecent(kind: KeyKind, text: string, afterEvent: number): boolean {
    return this.#findRecent(hashOf(kind, text), afterEvent) >= 0;
  }

  #hasMatch(item: HashedItem, afterEvent: number): boolean {
    if (item.length === 0) return true;
    const walk = this.#findWalk(item, afterEvent);
    return walk !== undefined && !this.#events(walk, afterEvent, this.chains.eventCount).next().done;
  }

  /**
   * Returns undefined if no later event can match: for each clause, an event after the given one must have one of its
   * keys.
   */
  #findWalk(item: HashedItem, afterEvent: number): Walk | undefined {
    const clauses: KeyClause[] = [];
    let driver = 0;
    let driverCost = Infinity;
    for (const clause of item) {
      const keys = this.#recentKeys(clause, afterEvent);
      if (keys.length === 0) return undefined;
      const cost = keys.reduce((sum, key) => sum + this.chains.countOf(key), 0);
      if (cost < driverCost) [driver, driverCost] = [clauses.length, cost];
      clauses.push(keys);
    }
    return { driver: clauses[driver] as KeyClause, others: clauses.toSpliced(driver, 1) };
  }

  #recentKeys(clause: readonly KeyHash[], afterEvent: number): number[] {
    const keys: number[] = [];
    for (const hash of clause) {
      const key = this.#findRecent(hash, afterEvent);
      if (key >= 0) keys.push(key);
    }
    return keys;
  }

  /** Returns the number of the key if a later event has it, otherwise -1. */
  #findRecent(hash: KeyHash, afterEvent: number): number {
    const key = this.chains.find(hash);
    return key >= 0 && this.chains.eventOf(this.chains.newestOf(key)) > afterEvent ? key : -1;
  }

  /** Yields the events of one key after the other, each newest first. */
  *#events({ driver, others }: Walk, after: number, upTo: number): Generator<number, void> {
    const { chains } = this;
    for (const key of driver)
      for (let entry = chains.newestOf(key); entry !== 0; entry = chains.previousOf(entry)) {
        const event = chains.eventOf(entry);
        if (event <= after) break;
        if (event <= upTo && others.every((keys) => keys.some((other) => chains.has(event, other)))) yield event;
      }
  }

  *#union(walks: readonly Walk[], after: number, upTo: number): Generator<number> {
    for (const walk of walks) yield* this.#events(walk, after, upTo);
  }

  *#positions(walk: Walk, after: number, upTo: number): Generator<number> {
    for (const event of this.#events(walk, after - this.first, upTo - this.first)) yield this.first + event;
  }

  *#distinct(events: Uint32Array): Generator<number> {
    let before = -1;
    for (const event of events) {
      if (event !== before) yield this.first + event;
      before = event;
    }
  }
}

function* counted(after: number, upTo: number, backwards: boolean): Generator<number> {
  if (backwards) for (let position = upTo; position > after; position--) yield position;
  else for (let position = after + 1; position <= upTo; position++) yield position;
}
