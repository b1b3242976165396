// A log as a plain list: every index must give the same answers.
import * as fc from "fast-check";
import type {
  IndexedLine,
  LineAddress,
  PositionRange,
  SealedSegment,
} from "../../../src/events/index/keys/indexed-line.ts";
import { keysOf, type IndexedEvent } from "../../../src/events/index/keys/key-hash.ts";
import { matches, type Items } from "../../../src/events/model/query.ts";
import { checksumOf } from "../../../src/format/checksum.ts";

export class ModelLog {
  readonly segments: SealedSegment[] = [];
  readonly events: { readonly event: IndexedEvent; readonly line: LineAddress }[] = [];
  /** The segments that were read, in order. */
  readonly scanned: number[] = [];
  readonly #lines = new Map<number, IndexedLine[]>();
  readonly #name: string;

  /** Each segment is a list of lines, each line a list of events. */
  constructor(
    segments: readonly (readonly (readonly IndexedEvent[])[])[],
    { name = "log", firstSegment = 1, step = 1 } = {},
  ) {
    this.#name = name;
    for (const lines of segments) this.seal(lines, firstSegment + this.segments.length * step);
  }

  get last(): number {
    return this.events.length;
  }

  seal(lines: readonly (readonly IndexedEvent[])[], number = (this.segments.at(-1)?.number ?? 0) + 1): SealedSegment {
    const first = this.last + 1;
    let offset = 0;
    const indexed = lines.map((events): IndexedLine => {
      const line = { segment: number, offset, bytes: 40 + events.length, first: this.last + 1 };
      offset += line.bytes;
      this.events.push(...events.map((event) => ({ event, line })));
      return { ...line, timeMs: this.last, keys: events.map(keysOf) };
    });
    const checksum = checksumOf(`${this.#name} ${number} ${JSON.stringify(lines)}`);
    const segment = { number, first, last: this.last, length: offset, checksum };
    this.#lines.set(number, indexed);
    this.segments.push(segment);
    return segment;
  }

  linesOf(segment: number): readonly IndexedLine[] {
    return this.#lines.get(segment) ?? [];
  }

  readonly scan = async function* (this: ModelLog, segment: SealedSegment): AsyncGenerator<IndexedLine> {
    this.scanned.push(segment.number);
    yield* this.linesOf(segment.number);
  }.bind(this);

  find(items: Items, { after, upTo }: PositionRange, backwards: boolean): number[] {
    const found = this.events.flatMap(({ event }, index) =>
      index + 1 > after && index + 1 <= upTo && matches(items, event) ? [index + 1] : [],
    );
    return backwards ? found.reverse() : found;
  }

  findId(id: string): number[] {
    return this.events.flatMap(({ event }, index) => (event.id === id ? [index + 1] : []));
  }
}

const type = fc.constantFrom("Opened", "Sold", "Closed");
// The same text as a type, as a tag and as an id: they must not be confused.
const tag = fc.constantFrom("a", "b", "c", "d", "Sold", "id-1");

export const anyEvent: fc.Arbitrary<IndexedEvent> = fc.record({
  type,
  tags: fc.array(tag, { maxLength: 4 }),
  id: fc.option(fc.constantFrom("id-1", "id-2", "Sold"), { nil: undefined, freq: 2 }),
});

/** Segments without lines, lines without events, and everything between. */
export const anySegments: fc.Arbitrary<IndexedEvent[][][]> = fc.array(
  fc.array(fc.array(anyEvent, { maxLength: 3 }), { maxLength: 6 }),
  { minLength: 1, maxLength: 14 },
);

export const anyItems: fc.Arbitrary<Items> = fc.array(
  fc.record({
    types: fc.uniqueArray(fc.oneof(type, fc.constant("Never")), { maxLength: 3 }),
    tags: fc.uniqueArray(fc.oneof(tag, fc.constant("never")), { maxLength: 3 }),
  }),
  { minLength: 1, maxLength: 4 },
);

export interface Question {
  readonly items: Items;
  readonly range: PositionRange;
  readonly backwards: boolean;
}

export const anyQuestion: fc.Arbitrary<Question> = fc.record({
  items: anyItems,
  range: fc.record({ after: fc.integer({ min: -1, max: 60 }), upTo: fc.integer({ min: -1, max: 80 }) }),
  backwards: fc.boolean(),
});

export async function listOf<T>(values: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const value of values) list.push(value);
  return list;
}
