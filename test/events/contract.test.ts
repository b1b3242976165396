// The contract on every kind of disk, in both modes; and random appends and questions compared with
// a plain list.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { NewEvent } from "../../src/common.ts";
import { isHoldfastError } from "../../src/errors.ts";
import type { EventStore, ReadOptions } from "../../src/events/model/event-store.ts";
import { itemsOf, matches, type Query } from "../../src/events/model/query.ts";
import { describeContract } from "./contract.ts";
import { listOf, logSites, positionsOf } from "../sites/event-logs.ts";

for (const [name, make] of logSites) describeContract(name, make);

interface Append {
  readonly events: readonly NewEvent[];
  readonly query: Query | undefined;
  /** How far behind the head its `after` is; undefined: it has none. */
  readonly behind: number | undefined;
}
interface Question extends Omit<ReadOptions, "signal"> {
  readonly query: Query;
}
type Step =
  | { readonly kind: "append"; readonly together: readonly Append[] }
  | { readonly kind: "retag"; readonly positions: readonly number[]; readonly tags: readonly string[] }
  | { readonly kind: "ask"; readonly questions: readonly Question[] };

const type = fc.constantFrom("Opened", "Sold", "Closed");
const tag = fc.constantFrom("a", "b", "c", "Sold");
const query: fc.Arbitrary<Query> = fc.oneof(
  { weight: 1, arbitrary: fc.constant<Query>("all") },
  {
    weight: 6,
    arbitrary: fc.array(
      fc.record({ types: fc.uniqueArray(type, { maxLength: 2 }), tags: fc.uniqueArray(tag, { maxLength: 2 }) }),
      { minLength: 1, maxLength: 3 },
    ),
  },
);
const plain = fc.record({ type, data: fc.jsonValue({ maxDepth: 1 }), tags: fc.array(tag, { maxLength: 3 }) });
/** An id mostly goes with one content, as it should. */
const named = fc
  .tuple(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 0, max: 7 }))
  .map(([id, other]): NewEvent => ({
    type: "Named",
    data: other === 0 ? "another content" : id,
    tags: ["a"],
    id: `id-${id}`,
  }));
const events: fc.Arbitrary<readonly NewEvent[]> = fc.oneof(
  { weight: 4, arbitrary: fc.array(plain, { minLength: 1, maxLength: 3 }) },
  { weight: 1, arbitrary: fc.uniqueArray(named, { minLength: 1, maxLength: 2, selector: ({ id }) => id }) },
);
const append: fc.Arbitrary<Append> = fc.record({
  events,
  query: fc.option(query, { nil: undefined, freq: 2 }),
  behind: fc.option(fc.integer({ min: -2, max: 12 }), { nil: undefined }),
});
const count = fc.integer({ min: 0, max: 60 });
const question: fc.Arbitrary<Question> = fc.record({
  query,
  after: count,
  upTo: fc.oneof(count, fc.constant(undefined)),
  limit: fc.oneof(fc.integer({ min: 0, max: 10 }), fc.constant(undefined)),
  backwards: fc.boolean(),
});
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("append" as const),
      together: fc.array(append, { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("retag" as const),
      positions: fc.array(count, { minLength: 1, maxLength: 3 }),
      tags: fc.array(tag, { minLength: 1, maxLength: 2 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("ask" as const),
      questions: fc.array(question, { minLength: 1, maxLength: 4 }),
    }),
  },
);

/** The log as a list. */
class Model {
  readonly events: { type: string; data: unknown; tags: string[]; id: string | undefined }[] = [];

  /** The answer that a store must give. */
  append({ events, query }: Append, after: number): object {
    const known = events.map(({ id }) => (id === undefined ? -1 : this.events.findIndex((event) => event.id === id)));
    if (known.some((index) => index >= 0)) return this.#again(events, known);
    if (query !== undefined) {
      const conflicts = this.ask({ query, after });
      if (conflicts.length > 0) return { code: "APPEND_CONDITION_FAILED", positions: conflicts };
    }
    for (const { type, data, tags = [], id } of events)
      this.events.push({ type, data: JSON.parse(JSON.stringify(data)) as unknown, tags: [...new Set(tags)], id });
    return { first: this.events.length - events.length + 1, last: this.events.length, repeated: false };
  }

  #again(events: readonly NewEvent[], known: readonly number[]): object {
    const first = known[0] ?? 0;
    const isSame = known.every(
      (index, offset) => index >= 0 && index === first + offset && this.events[index]?.data === events[offset]?.data,
    );
    if (isSame) return { first: first + 1, last: first + events.length, repeated: true };
    return { code: "EVENT_ID_REUSED" };
  }

  ask({ query, after = 0, upTo = Infinity, limit = Infinity, backwards = false }: Question): number[] {
    const items = itemsOf(query);
    const found = this.events.flatMap((event, index) =>
      index + 1 > after && index + 1 <= upTo && matches(items, event) ? [index + 1] : [],
    );
    return (backwards ? found.reverse() : found).slice(0, limit);
  }
}

async function answerOf(store: EventStore, { events, query }: Append, after: number | undefined): Promise<object> {
  const condition = query === undefined ? undefined : { failIfEventsMatch: query, after };
  try {
    return await store.append(events, { condition });
  } catch (error) {
    if (isHoldfastError(error, "APPEND_CONDITION_FAILED"))
      return { code: error.code, positions: positionsOf(error.conflicts) };
    if (isHoldfastError(error, "EVENT_ID_REUSED")) return { code: error.code };
    throw error;
  }
}

async function take(model: Model, store: EventStore, step: Step): Promise<void> {
  if (step.kind === "append") {
    const head = model.events.length;
    const afters = step.together.map(({ behind }) => (behind === undefined ? undefined : Math.max(0, head - behind)));
    const answers = await Promise.all(step.together.map((each, index) => answerOf(store, each, afters[index])));
    expect(answers).toEqual(step.together.map((each, index) => model.append(each, afters[index] ?? 0)));
  } else if (step.kind === "retag") {
    const positions = step.positions.filter((position) => position >= 1 && position <= model.events.length);
    if (positions.length === 0) return;
    await store.addTags(positions, step.tags);
    for (const position of positions) {
      const event = model.events[position - 1];
      if (event !== undefined) event.tags = [...new Set([...event.tags, ...step.tags])];
    }
  } else {
    expect(await store.head()).toBe(model.events.length);
    for (const { query, ...options } of step.questions) {
      const found = await listOf(store.read(query, options));
      expect(positionsOf(found)).toEqual(model.ask({ query, ...options }));
      for (const { position, type, data, tags } of found) {
        const event = model.events[position - 1]!;
        expect({ type, data }).toEqual({ type: event.type, data: event.data });
        // A set: tags that were added later come in any order.
        expect([...tags].sort()).toEqual([...event.tags].sort());
      }
    }
  }
}

describe.each(logSites)("on %s", (name, make) => {
  // Fewer runs on the real disk: each append waits for it.
  const numRuns = name.includes("real") ? 6 : 25;

  it("random appends and questions of two processes get the answers of a plain list", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.boolean(), step), { minLength: 10, maxLength: 30 }), async (steps) => {
        const site = await make();
        const stores = [await site.open({ segmentBytesMax: 500 }), await site.open({ segmentBytesMax: 500 })];
        const model = new Model();
        // Memory is one store: a new one for each run.
        for (const [isOther, each] of steps) await take(model, stores[isOther ? 1 : 0]!, each);
        const fresh = await site.open();
        await take(model, fresh, {
          kind: "ask",
          questions: [{ query: "all" }, { query: { tags: ["a"] }, backwards: true }],
        });
        for (const store of new Set([...stores, fresh])) await store.close();
      }),
      { numRuns, endOnFailure: true },
    );
  });
});
