// The contract of an event store: every MUST of the DCB specification (dcb.events/specification)
// and every promise of the interface, for any way to open one.
import { getEventListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { NewEvent, SequencedEvent } from "../../src/common.ts";
import { isHoldfastError } from "../../src/errors.ts";
import type { EventStore } from "../../src/events/model/event-store.ts";
import type { Query } from "../../src/events/model/query.ts";
import { failureOf, listOf, type LogSiteMaker, numbers, positionsOf, smallSegments } from "../sites/event-logs.ts";

const sold = (sku: string, ...tags: string[]): NewEvent => ({
  type: "Sold",
  data: { sku },
  tags: [`sku:${sku}`, ...tags],
});
const stocked = (sku: string, ...tags: string[]): NewEvent => ({ ...sold(sku, ...tags), type: "Stocked" });
const noted = (text: string): NewEvent => ({ type: "Noted", data: text });
const closed = { code: "CLOSED", action: "reopen" };

export function describeContract(name: string, make: LogSiteMaker): void {
  describe(`an event store on ${name}`, () => {
    describeReading(make);
    describeAppending(make);
    describeConditions(make);
    describeIds(make);
    describeTags(make);
    describeFollowing(make);
    describeWaiting(make);
    describeClosing(make);
  });
}

/** A store with these events, one append each. */
async function storeWith(make: LogSiteMaker, ...events: readonly NewEvent[]): Promise<EventStore> {
  const store = await (await make()).open();
  for (const event of events) await store.append(event);
  return store;
}

/** Some of each kind, at the positions 1 to 6. */
const shop = [
  stocked("apple", "till:1"),
  sold("apple", "till:1"),
  stocked("pear", "till:2"),
  sold("pear", "till:1"),
  noted("closing time"),
  sold("apple", "till:2"),
];

function describeReading(make: LogSiteMaker): void {
  describe("read", () => {
    it.each<[what: string, query: Query | undefined, positions: number[]]>([
      ["everything without a query", undefined, [1, 2, 3, 4, 5, 6]],
      ['everything for "all"', "all", [1, 2, 3, 4, 5, 6]],
      ["everything for an item without parts", {}, [1, 2, 3, 4, 5, 6]],
      ["everything for an item with empty parts", { types: [], tags: [] }, [1, 2, 3, 4, 5, 6]],
      ["the events of a type", { types: ["Sold"] }, [2, 4, 6]],
      ["the events of any of several types", { types: ["Stocked", "Noted"] }, [1, 3, 5]],
      ["the events with a tag", { tags: ["sku:apple"] }, [1, 2, 6]],
      ["only the events with all of several tags", { tags: ["sku:apple", "till:1"] }, [1, 2]],
      ["only the events of the type and with the tag", { types: ["Sold"], tags: ["till:1"] }, [2, 4]],
      ["what any of several items asks for, each once", [{ types: ["Sold"] }, { tags: ["sku:apple"] }], [1, 2, 4, 6]],
      ["everything if one of the items asks for it", [{ types: ["Sold"] }, {}], [1, 2, 3, 4, 5, 6]],
      ["an item that is named twice, once", [{ types: ["Noted"] }, { types: ["Noted"] }], [5]],
      ["nothing for an unused type", { types: ["Never"] }, []],
      ["nothing for an unused tag", { types: ["Sold"], tags: ["never"] }, []],
      ["nothing for the beginning of another tag", { tags: ["sku:app"] }, []],
      ["nothing for a tag that differs in case", { tags: ["SKU:apple"] }, []],
      ["nothing for a type given as a tag, or a tag as a type", [{ tags: ["Sold"] }, { types: ["till:1"] }], []],
    ])("gives %s", async (_, query, positions) => {
      const store = await storeWith(make, ...shop);
      expect(positionsOf(await listOf(store.read(query)))).toEqual(positions);
      expect(positionsOf(await listOf(store.read(query, { backwards: true })))).toEqual([...positions].reverse());
      expect((await store.last(query))?.position).toBe(positions.at(-1));
    });

    it("gives an event back as it was appended, with its position, time, id, tags and metadata", async () => {
      const data = {
        text: 'quotes " and \n newlines, ,"payload":[ and ,"crc":"',
        list: [1, null, { deep: true }],
        zero: -0.5,
      };
      const beforeMs = Date.now() - 1;
      const store = await storeWith(
        make,
        { type: "Ünlike\ud83d\ude00", data, tags: ["b", "a", "b"], metadata: { by: "ada" }, id: "first" },
        noted(""),
      );
      const [first, second] = await listOf(store.read());
      expect(first).toEqual({
        type: "Ünlike\ud83d\ude00",
        data,
        tags: ["b", "a"],
        metadata: { by: "ada" },
        id: "first",
        position: 1,
        time: expect.any(String) as string,
      });
      expect(second).toMatchObject({ type: "Noted", data: "", tags: [], metadata: {}, position: 2 });
      expect(second?.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(new Date(first?.time ?? "").toISOString()).toBe(first?.time);
      // The simulated worlds have a time of their own.
      if (Date.parse(first?.time ?? "") > 1_750_000_000_000)
        expect(Date.parse(first?.time ?? "")).toBeGreaterThanOrEqual(beforeMs);
    });

    it.each(["x/y", "x_y", "X/Y", "a_b", "..", "con", "x".repeat(1000), "\ud800", "🍏", "__proto__"])(
      "distinguishes the tag %j from all others",
      async (tag) => {
        const others = ["x/y", "x_y", "X/Y", "a_b", "a", "b", "x", "\ud801", "\ufffd", "x".repeat(999)];
        const store = await storeWith(
          make,
          ...others.filter((other) => other !== tag).map((other) => sold("any", other)),
        );
        const { first } = await store.append({ type: tag, data: tag, tags: [tag] });
        for (const query of [{ tags: [tag] }, { types: [tag] }])
          expect(await listOf(store.read(query))).toMatchObject([
            { position: first, type: tag, tags: [tag], data: tag },
          ]);
      },
    );

    it("begins behind `after`, ends with `upTo` and stops at `limit`, in both directions", async () => {
      const store = await storeWith(make, ...shop, ...shop);
      const sales = [2, 4, 6, 8, 10, 12];
      for (const after of [0, 1, 2, 5, 11, 12, 13, 1000])
        for (const upTo of [0, 1, 4, 9, 12, 1000, Infinity])
          for (const limit of [0, 1, 3, 100, Infinity]) {
            const options = { after, upTo, limit };
            const all = numbers(after + 1, Math.min(upTo, 12));
            const some = sales.filter((position) => position > after && position <= upTo);
            expect(positionsOf(await listOf(store.read("all", options)))).toEqual(all.slice(0, limit));
            expect(positionsOf(await listOf(store.read({ types: ["Sold"] }, options)))).toEqual(some.slice(0, limit));
            const backwards = { ...options, backwards: true };
            expect(positionsOf(await listOf(store.read("all", backwards)))).toEqual(all.reverse().slice(0, limit));
            expect(positionsOf(await listOf(store.read({ types: ["Sold"] }, backwards)))).toEqual(
              some.reverse().slice(0, limit),
            );
          }
    });

    it.each([{ query: "all" as const }, { query: { types: ["Noted"] } }])(
      "ends at the head of its beginning, whatever is appended meanwhile ($query)",
      async ({ query }) => {
        const store = await storeWith(make, noted("1"), noted("2"), noted("3"));
        for (const backwards of [false, true]) {
          const head = await store.head();
          const seen: number[] = [];
          for await (const { position } of store.read(query, { backwards })) {
            seen.push(position);
            await store.append(noted(`after ${position}`));
          }
          expect(seen).toEqual(backwards ? numbers(1, head).reverse() : numbers(1, head));
        }
        expect(await store.head()).toBe(12);
      },
    );

    it("can be begun and left at any event, and begun again", async () => {
      const store = await storeWith(make, ...shop);
      for (let stop = 1; stop <= 6; stop++)
        for (const query of ["all", { tags: ["sku:apple"] }] as const)
          for await (const { position } of store.read(query)) if (position >= stop) break;
      const reading = store.read({ types: ["Sold"] });
      expect(positionsOf(await listOf(reading))).toEqual([2, 4, 6]);
    });

    it("of an empty store gives nothing, and its head is 0", async () => {
      const store = await storeWith(make);
      expect(await store.head()).toBe(0);
      expect(await listOf(store.read())).toEqual([]);
      expect(await listOf(store.read("all", { backwards: true }))).toEqual([]);
      expect(await store.last()).toBe(undefined);
      expect(await store.last({ types: ["Sold"] })).toBe(undefined);
    });

    it("by many callers at the same time gives each its own events", async () => {
      const store = await storeWith(make, ...shop, ...shop, ...shop);
      const queries: Query[] = ["all", { types: ["Sold"] }, { tags: ["sku:apple"] }, { types: ["Noted"] }];
      const expected = [numbers(1, 18), [2, 4, 6, 8, 10, 12, 14, 16, 18], [1, 2, 6, 7, 8, 12, 13, 14, 18], [5, 11, 17]];
      const found = await Promise.all(
        [...queries, ...queries].map(async (query) => positionsOf(await listOf(store.read(query)))),
      );
      expect(found).toEqual([...expected, ...expected]);
    });

    it("sees whole batches and no gap while others append", async () => {
      const site = await make();
      const [writer, reader] = [await site.open(), await site.open()];
      let isOver = false;
      const writing = (async () => {
        for (let batch = 0; batch < 25; batch++)
          await writer.append(
            numbers(1, 1 + (batch % 4)).map((index) => ({
              type: "Part",
              data: { batch, index, of: 1 + (batch % 4) },
              tags: [`batch:${batch}`],
            })),
          );
      })().finally(() => (isOver = true));
      let longest = 0;
      while (!isOver) {
        // Reads of a local disk do not yield to the event loop: a loop of reads alone would stop
        // the writer.
        await sleep(0);
        const seen = await listOf(reader.read());
        expect(positionsOf(seen)).toEqual(numbers(1, seen.length));
        expect(seen.length).toBeGreaterThanOrEqual(longest);
        longest = seen.length;
        const last = seen.at(-1)?.data as { batch: number; index: number; of: number } | undefined;
        if (last !== undefined) expect(last.index).toBe(last.of);
        const tagged = last === undefined ? [] : await listOf(reader.read({ tags: [`batch:${last.batch}`] }));
        expect(tagged.length).toBe(last?.of ?? 0);
      }
      await writing;
      expect(await reader.head()).toBe(await writer.head());
    });

    it("rejects when its signal is aborted: before it begins and between two events", async () => {
      const store = await storeWith(make, ...shop);
      const reason = new Error("enough");
      expect(await failureOf(listOf(store.read("all", { signal: AbortSignal.abort(reason) })))).toBe(reason);
      const controller = new AbortController();
      const seen: number[] = [];
      const reading = (async () => {
        for await (const { position } of store.read("all", { signal: controller.signal })) {
          seen.push(position);
          if (position === 2) controller.abort(reason);
        }
      })();
      expect(await failureOf(reading)).toBe(reason);
      expect(seen).toEqual([1, 2]);
    });
  });
}

function describeAppending(make: LogSiteMaker): void {
  describe("append", () => {
    it("numbers the events of all appends without a gap, and returns their positions", async () => {
      const store = await storeWith(make);
      expect(await store.append(noted("1"))).toEqual({ first: 1, last: 1, repeated: false });
      expect(await store.append([noted("2"), noted("3"), noted("4")])).toEqual({ first: 2, last: 4, repeated: false });
      expect(await store.append([noted("5")])).toEqual({ first: 5, last: 5, repeated: false });
      const together = await Promise.all(numbers(6, 60).map((each) => store.append(noted(String(each)))));
      expect(together).toEqual(numbers(6, 60).map((each) => ({ first: each, last: each, repeated: false })));
      expect((await listOf(store.read())).map(({ position, data }) => [position, data])).toEqual(
        numbers(1, 60).map((each) => [each, String(each)]),
      );
      expect(await store.head()).toBe(60);
      expect(await store.last()).toMatchObject({ position: 60, data: "60" });
    });

    it("keeps acknowledged events when the log is opened again, by this and by another process", async () => {
      const site = await make();
      const store = await site.open();
      for (const event of shop) await store.append([event, event]);
      const before = await listOf(store.read());
      if (site.isShared) await store.close();
      for (let time = 0; time < 2; time++) {
        const again = await site.open();
        expect(await again.head()).toBe(12);
        expect(await listOf(again.read())).toEqual(before);
        expect(positionsOf(await listOf(again.read({ types: ["Noted"] })))).toEqual([9, 10]);
      }
    });

    it("of several processes at once overwrites nothing and leaves no gap", async () => {
      const site = await make();
      const stores = [await site.open(), await site.open(), await site.open()];
      const appended = await Promise.all(
        numbers(1, 30).map(async (each) => {
          const { first, last } = await stores[each % 3]!.append([noted(`${each}a`), noted(`${each}b`)]);
          return { each, first, last };
        }),
      );
      for (const store of stores) {
        const seen = await listOf(store.read());
        expect(positionsOf(seen)).toEqual(numbers(1, 60));
        for (const { each, first, last } of appended)
          expect([last - first, seen[first - 1]?.data, seen[last - 1]?.data]).toEqual([1, `${each}a`, `${each}b`]);
      }
    });

    it("writes a batch as a whole or not at all", async () => {
      const store = await storeWith(make, sold("apple"));
      const batch = [noted("1"), noted("2"), { ...noted("3"), tags: ["a\nb"] }];
      expect(await failureOf(store.append(batch))).toMatchObject({ code: "EVENT_INVALID" });
      const condition = { failIfEventsMatch: { types: ["Sold"] } };
      expect(await failureOf(store.append([noted("1"), noted("2")], { condition }))).toMatchObject({
        code: "APPEND_CONDITION_FAILED",
      });
      expect(await store.head()).toBe(1);
      expect(positionsOf(await listOf(store.read()))).toEqual([1]);
    });

    it("of ten thousand events is one batch", async () => {
      const store = await storeWith(make, noted("before"));
      expect(await store.append(numbers(1, 10_000).map((each) => sold(String(each % 100))))).toEqual({
        first: 2,
        last: 10_001,
        repeated: false,
      });
      expect(await listOf(store.read({ tags: ["sku:7"] }, { limit: 2 }))).toMatchObject([
        { position: 8 },
        { position: 108 },
      ]);
      expect(await store.append(noted("after"))).toMatchObject({ first: 10_002 });
    });

    it("stores the event as it was at the call", async () => {
      const store = await storeWith(make);
      const event = { type: "Sold", data: { at: new Date(0) as unknown, gone: undefined }, tags: ["a"] };
      const appending = store.append(event);
      event.type = "Changed";
      event.tags.push("b");
      await appending;
      expect(await listOf(store.read())).toMatchObject([
        { type: "Sold", tags: ["a"], data: { at: "1970-01-01T00:00:00.000Z" } },
      ]);
    });
  });
}

function describeConditions(make: LogSiteMaker): void {
  describe("a condition", () => {
    const none = { failIfEventsMatch: { types: ["Sold"], tags: ["sku:apple"] } };

    it("without `after` fails on any match, and the error carries the conflicts", async () => {
      const store = await storeWith(make, ...shop);
      const error = await failureOf(store.append(noted("never"), { condition: none }));
      if (!isHoldfastError(error, "APPEND_CONDITION_FAILED")) throw error;
      expect(error.action).toBe("retry");
      expect(error.conflicts).toEqual(await listOf(store.read(none.failIfEventsMatch)));
      expect(positionsOf(error.conflicts)).toEqual([2, 6]);
      expect(await store.head()).toBe(6);
    });

    it("holds when nothing matches", async () => {
      const store = await storeWith(make, ...shop);
      for (const query of [
        { types: ["Never"] },
        { tags: ["sku:apple", "sku:pear"] },
        [{ types: ["Noted"], tags: ["till:1"] }],
      ])
        await store.append(noted("fine"), { condition: { failIfEventsMatch: query } });
      expect(await store.head()).toBe(9);
    });

    it("with `after` fails on later events only", async () => {
      const store = await storeWith(make, ...shop);
      for (const [after, conflicts] of [
        [0, [2, 6]],
        [1, [2, 6]],
        [2, [6]],
        [5, [6]],
      ] as const) {
        const error = await failureOf(store.append(noted("never"), { condition: { ...none, after } }));
        if (!isHoldfastError(error, "APPEND_CONDITION_FAILED")) throw error;
        expect(positionsOf(error.conflicts)).toEqual(conflicts);
      }
      expect(await store.append(noted("fine"), { condition: { ...none, after: 6 } })).toMatchObject({ first: 7 });
    });

    it("with `after` at or beyond the head holds", async () => {
      const store = await storeWith(make, ...shop);
      let position = 6;
      for (const after of [6, 7, 1000, Number.MAX_SAFE_INTEGER])
        expect(
          await store.append(noted("fine"), { condition: { failIfEventsMatch: { types: ["Sold"] }, after } }),
        ).toMatchObject({ first: ++position });
    });

    it('on "all" means that nothing may have been appended since', async () => {
      const store = await storeWith(make);
      const condition = { failIfEventsMatch: "all" } as const;
      expect(await store.append(noted("1"), { condition })).toMatchObject({ first: 1 });
      expect(await failureOf(store.append(noted("2"), { condition }))).toMatchObject({ conflicts: [{ position: 1 }] });
      expect(await store.append(noted("2"), { condition: { ...condition, after: 1 } })).toMatchObject({ first: 2 });
    });

    it("fails on any one event that matches, however long ago that was", async () => {
      const store = await storeWith(make, ...shop, ...numbers(1, 40).map((each) => noted(`later ${each}`)));
      for (const query of [{ tags: ["sku:pear"] }, [{ types: ["Never"] }, { types: ["Stocked"] }]])
        expect(
          await failureOf(store.append(noted("never"), { condition: { failIfEventsMatch: query } })),
        ).toMatchObject({
          code: "APPEND_CONDITION_FAILED",
        });
    });

    it("is not failed by the events of the append itself", async () => {
      const store = await storeWith(make);
      const condition = { failIfEventsMatch: { types: ["Sold"] } };
      expect(await store.append([sold("a"), sold("b")], { condition })).toMatchObject({ first: 1, last: 2 });
    });

    it("is judged in the order of the calls, also within one batch", async () => {
      const store = await storeWith(make);
      const claim = (name: string, by: number): Promise<unknown> =>
        store
          .append(
            { type: "Claimed", data: { by, at: new Date(0) }, tags: [`name:${name}`] },
            { condition: { failIfEventsMatch: { tags: [`name:${name}`] } } },
          )
          .catch((error: unknown) => error);
      const answers = await Promise.all(numbers(1, 30).map((each) => claim(`n${each % 10}`, each)));
      for (const [index, answer] of answers.entries())
        if (index < 10) expect(answer).toEqual({ first: index + 1, last: index + 1, repeated: false });
        else
          expect(answer).toMatchObject({
            code: "APPEND_CONDITION_FAILED",
            conflicts: [{ position: (index % 10) + 1, data: { by: (index % 10) + 1 } }],
          });
      expect(await store.head()).toBe(10);
    });

    it("reports its conflicts in the order of the log, also those of its batch", async () => {
      const store = await storeWith(make, sold("a"), stocked("b"));
      const condition = { failIfEventsMatch: [{ types: ["Stocked"] }, { types: ["Sold"] }] };
      const [, refused] = await Promise.allSettled([
        store.append([sold("c"), stocked("d"), sold("e")]),
        store.append(noted("never"), { condition }),
      ]);
      expect(positionsOf((refused as PromiseRejectedResult).reason.conflicts as SequencedEvent[])).toEqual(
        numbers(1, 5),
      );
    });

    // Not as the other caller gave it: with a Date, or as an object that this caller may change.
    it("that fails on an event of its batch reports it as stored", async () => {
      const store = await storeWith(make);
      const condition = { failIfEventsMatch: { types: ["Dated"] } };
      const appends = await Promise.allSettled(
        [1, 2].map((each) => store.append({ type: "Dated", data: { each, at: new Date(0) } }, { condition })),
      );
      const [stored] = await listOf(store.read());
      expect(appends).toMatchObject([{ status: "fulfilled" }, { reason: { code: "APPEND_CONDITION_FAILED" } }]);
      const refused = appends[1] as PromiseRejectedResult;
      expect((refused.reason as { conflicts: unknown }).conflicts).toEqual([stored]);
    });

    it("lets exactly one of many stores win a name", async () => {
      const site = await make();
      const stores = [await site.open(), await site.open()];
      for (const name of ["ada", "bob", "cyd"]) {
        const condition = { failIfEventsMatch: { types: ["Registered"], tags: [`name:${name}`] } };
        const results = await Promise.allSettled(
          numbers(1, 8).map((each) =>
            stores[each % 2]!.append({ type: "Registered", data: { each }, tags: [`name:${name}`] }, { condition }),
          ),
        );
        expect(results.filter(({ status }) => status === "fulfilled").length).toBe(1);
        for (const result of results)
          if (result.status === "rejected")
            expect(result.reason).toMatchObject({
              code: "APPEND_CONDITION_FAILED",
              conflicts: [{ tags: [`name:${name}`] }],
            });
      }
      expect(await stores[0]!.head()).toBe(3);
    });

    it("is judged against events that another process has just appended", async () => {
      const site = await make();
      const [one, other] = [await site.open(), await site.open()];
      const condition = { failIfEventsMatch: { types: ["Sold"] } };
      for (let round = 1; round <= 5; round++) {
        const { last } = await one.append(sold("apple"));
        expect(
          await failureOf(other.append(noted("never"), { condition: { ...condition, after: last - 1 } })),
        ).toMatchObject({ conflicts: [{ position: last }] });
        await other.append(noted("fine"), { condition: { ...condition, after: last } });
      }
    });

    it("does not fail appends that do not match it", async () => {
      const store = await storeWith(make);
      const appends = numbers(1, 40).map((each) =>
        store.append(sold(`s${each}`), { condition: { failIfEventsMatch: { tags: [`sku:s${each}`] }, after: 0 } }),
      );
      expect((await Promise.all(appends)).map(({ first }) => first)).toEqual(numbers(1, 40));
    });

    it("carries a hundred conflicts at most", async () => {
      const store = await storeWith(make);
      await store.append(numbers(1, 250).map((each) => noted(String(each))));
      const error = await failureOf(
        store.append(noted("never"), { condition: { failIfEventsMatch: { types: ["Noted"] } } }),
      );
      if (!isHoldfastError(error, "APPEND_CONDITION_FAILED")) throw error;
      expect(positionsOf(error.conflicts)).toEqual(numbers(1, 100));
    });

    it("keeps concurrent decisions right: no buyer gets what is sold out", async () => {
      const site = await make();
      const stores = [await site.open(), await site.open()];
      const stock: Query = { tags: ["sku:apple"] };
      await stores[0]!.append(numbers(1, 7).map(() => stocked("apple")));
      const buy = async (store: EventStore): Promise<boolean> => {
        for (;;) {
          const events = await listOf(store.read(stock));
          const left = events.reduce((sum, { type }) => sum + (type === "Stocked" ? 1 : -1), 0);
          if (left <= 0) return false;
          const after = events.at(-1)?.position ?? 0;
          try {
            await store.append(sold("apple"), { condition: { failIfEventsMatch: stock, after } });
            return true;
          } catch (error) {
            if (!isHoldfastError(error, "APPEND_CONDITION_FAILED")) throw error;
          }
        }
      };
      const bought = await Promise.all(numbers(1, 10).map((each) => buy(stores[each % 2]!)));
      expect(bought.filter(Boolean).length).toBe(7);
      expect(await stores[1]!.head()).toBe(14);
    });
  });
}

function describeIds(make: LogSiteMaker): void {
  describe("an event id", () => {
    const withId = (id: string, event: NewEvent = sold("apple")): NewEvent => ({ ...event, id });

    it("makes a repeated append return the positions of the first one", async () => {
      const site = await make();
      const store = await site.open();
      const batch = [
        withId("a"),
        withId("b", { type: "Noted", data: { at: new Date(0), gone: undefined }, metadata: { x: 1 } }),
      ];
      await store.append(noted("before"));
      expect(await store.append(batch)).toEqual({ first: 2, last: 3, repeated: false });
      for (const event of shop) await store.append(event);
      for (const again of [store, await site.open()])
        expect(await again.append(batch)).toEqual({ first: 2, last: 3, repeated: true });
      expect(await store.head()).toBe(9);
    });

    it("is compared before the condition: a repeated append does not conflict with itself", async () => {
      const store = await storeWith(make);
      const claim = (): Promise<unknown> =>
        store.append(withId("claim"), { condition: { failIfEventsMatch: { tags: ["sku:apple"] } } });
      await claim();
      expect(await claim()).toEqual({ first: 1, last: 1, repeated: true });
    });

    it("accepts the content as a reader got it", async () => {
      const store = await storeWith(make, withId("a", sold("apple", "till:1")), { ...withId("b"), metadata: {} });
      for await (const event of store.read())
        expect(await store.append(event)).toEqual({ first: event.position, last: event.position, repeated: true });
    });

    it("with other content is refused, and the error names id and position", async () => {
      const store = await storeWith(make, noted("before"), withId("a", sold("apple", "till:1")));
      const others = [
        sold("pear", "till:1"),
        stocked("apple", "till:1"),
        sold("apple", "till:2"),
        sold("apple", "till:1", "more"),
        { ...sold("apple", "till:1"), metadata: { by: "ada" } },
      ];
      for (const other of others)
        expect(await failureOf(store.append(withId("a", other)))).toMatchObject({
          code: "EVENT_ID_REUSED",
          id: "a",
          position: 2,
        });
      expect(await store.head()).toBe(2);
    });

    // Tags may have been added since; the stored line has the original ones.
    it("with fewer tags is other content", async () => {
      const store = await storeWith(make, withId("a", sold("apple", "till:1")));
      expect(await failureOf(store.append(withId("a", sold("apple"))))).toMatchObject({ code: "EVENT_ID_REUSED" });
    });

    it("is refused when only a part of its append is there", async () => {
      const store = await storeWith(make, withId("a"));
      await store.append([withId("b"), withId("c")]);
      for (const batch of [
        [withId("a"), withId("new")],
        [withId("new"), withId("a")],
        [withId("a"), sold("apple")],
        [withId("c"), withId("b")],
        [withId("b"), withId("b2"), withId("c")],
      ])
        expect(await failureOf(store.append(batch))).toMatchObject({ code: "EVENT_ID_REUSED" });
      expect(await store.head()).toBe(3);
    });

    it("is compared within one batch, too", async () => {
      const store = await storeWith(make);
      const answers = await Promise.allSettled([
        store.append(withId("a")),
        store.append(withId("a")),
        store.append(withId("a", sold("pear"))),
        store.append([withId("b"), withId("a")]),
        store.append(withId("b")),
      ]);
      expect(answers).toMatchObject([
        { value: { first: 1, last: 1, repeated: false } },
        { value: { first: 1, last: 1, repeated: true } },
        { reason: { code: "EVENT_ID_REUSED", id: "a" } },
        { reason: { code: "EVENT_ID_REUSED" } },
        { value: { first: 2, last: 2, repeated: false } },
      ]);
    });

    // Else it could not be repeated: it would conflict with itself.
    it("is not given to two events of one append", async () => {
      const store = await storeWith(make);
      expect(await failureOf(store.append([withId("a", sold("x")), withId("a", sold("y"))]))).toMatchObject({
        action: "fix-caller",
      });
      expect(await store.head()).toBe(0);
    });

    it("is never confused with a type or a tag", async () => {
      const store = await storeWith(make, withId("Sold"), withId("sku:apple"));
      expect(await store.append(withId("new"))).toMatchObject({ first: 3, repeated: false });
      expect(await listOf(store.read({ tags: ["new"] }))).toEqual([]);
    });

    it("of many processes at once is given to one append only", async () => {
      const site = await make();
      const stores = [await site.open(), await site.open()];
      const answers = await Promise.all(
        numbers(1, 10).map((each) => stores[each % 2]!.append([withId("a"), withId("b")])),
      );
      expect(answers.filter(({ repeated }) => !repeated).length).toBe(1);
      expect(new Set(answers.map(({ first, last }) => `${first}-${last}`))).toEqual(new Set(["1-2"]));
    });
  });
}

function describeTags(make: LogSiteMaker): void {
  describe("addTags", () => {
    it("gives events more tags, for reads in both directions, and takes no position", async () => {
      const store = await storeWith(make, ...shop);
      await store.addTags([5, 2, 6], ["late", "till:1"]);
      expect(await store.head()).toBe(6);
      expect((await listOf(store.read())).map(({ tags }) => tags)).toEqual([
        ["sku:apple", "till:1"],
        ["sku:apple", "till:1", "late"],
        ["sku:pear", "till:2"],
        ["sku:pear", "till:1"],
        ["late", "till:1"],
        ["sku:apple", "till:2", "late", "till:1"],
      ]);
      expect(positionsOf(await listOf(store.read({ tags: ["late"] })))).toEqual([2, 5, 6]);
      expect(positionsOf(await listOf(store.read({ tags: ["late", "till:2"] }, { backwards: true })))).toEqual([6]);
      expect(positionsOf(await listOf(store.read({ types: ["Sold"], tags: ["till:1"] }, { backwards: true })))).toEqual(
        [6, 4, 2],
      );
      expect(
        positionsOf(await listOf(store.read([{ tags: ["late"] }, { types: ["Stocked"] }], { after: 1, upTo: 5 }))),
      ).toEqual([2, 3, 5]);
      expect((await store.last({ tags: ["late"] }))?.position).toBe(6);
    });

    it("affects conditions from then on, here and in other processes", async () => {
      const site = await make();
      const [one, other] = [await site.open(), await site.open()];
      for (const event of shop) await one.append(event);
      const condition = { failIfEventsMatch: { tags: ["late"] } };
      await other.append(noted("fine"), { condition });
      await one.addTags([3], ["late"]);
      for (const store of [one, other])
        expect(await failureOf(store.append(noted("never"), { condition }))).toMatchObject({
          conflicts: [{ position: 3, tags: ["sku:pear", "till:2", "late"] }],
        });
      expect(await other.append(noted("fine"), { condition: { ...condition, after: 3 } })).toMatchObject({ first: 8 });
    });

    it("affects concurrent appends in the order of the calls", async () => {
      const store = await storeWith(make, noted("1"));
      const condition = { failIfEventsMatch: { tags: ["late"] } };
      const answers = await Promise.allSettled([
        store.append(noted("2"), { condition }),
        store.addTags([1], ["late"]),
        sleep(0).then(() => store.append(noted("3"), { condition })),
      ]);
      expect(answers).toMatchObject([
        { status: "fulfilled" },
        { status: "fulfilled" },
        { reason: { code: "APPEND_CONDITION_FAILED" } },
      ]);
    });

    it("is kept when the log is opened again, however many segments later", async () => {
      const site = await make();
      const store = await site.open();
      for (const event of shop) await store.append(event);
      await store.addTags([1], ["early"]);
      for (let more = 0; more < 20; more++) await store.append(noted("x".repeat(100)));
      await store.addTags([20], ["early"]);
      for (let more = 0; more < 20; more++) await store.append(noted("x".repeat(100)));
      if (site.isShared) await store.close();
      const again = await site.open();
      expect(positionsOf(await listOf(again.read({ tags: ["early"] })))).toEqual([1, 20]);
      expect((await listOf(again.read("all", { limit: 1 })))[0]?.tags).toEqual(["sku:apple", "till:1", "early"]);
      expect(
        await failureOf(
          again.append(noted("never"), { condition: { failIfEventsMatch: { tags: ["early"] }, after: 19 } }),
        ),
      ).toMatchObject({ conflicts: [{ position: 20 }] });
    });

    it("is kept as the first call after an opening", async () => {
      const site = await make();
      if (!site.isShared) return;
      await (await site.open()).append(noted("1"));
      await (await site.open()).addTags([1], ["late"]);
      expect(positionsOf(await listOf((await site.open()).read({ tags: ["late"] })))).toEqual([1]);
    });

    it("does not change the comparison by id", async () => {
      const store = await storeWith(make, { ...noted("1"), id: "a" });
      await store.addTags([1], ["late"]);
      expect(await store.append({ ...noted("1"), id: "a" })).toEqual({ first: 1, last: 1, repeated: true });
    });

    it.each<[string, number[], string[], object]>([
      ["no positions", [], ["a"], { name: "TypeError" }],
      ["a position beyond the head", [3], ["a"], { name: "RangeError" }],
      ["the position 0", [0], ["a"], { name: "RangeError" }],
      ["a fractional position", [1.5], ["a"], { name: "RangeError" }],
      ["no tags", [1], [], { name: "TypeError" }],
      ["a tag with a newline", [1], ["a\nb"], { code: "EVENT_INVALID" }],
    ])("refuses %s, and changes nothing", async (_, positions, tags, error) => {
      const store = await storeWith(make, noted("1"), noted("2"));
      expect(await failureOf(store.addTags(positions, tags))).toMatchObject(error);
      expect((await listOf(store.read())).map((event) => event.tags)).toEqual([[], []]);
    });
  });
}

function describeFollowing(make: LogSiteMaker): void {
  describe("subscribe", () => {
    it("gives old and new events once each, in order, of all processes", async () => {
      const site = await make();
      const [one, other] = [await site.open(), await site.open()];
      for (let each = 1; each <= 6; each++) await one.append(noted(String(each)));
      const appending = (async () => {
        for (let each = 7; each <= 40; each += 2)
          await (each % 4 === 1 ? one : other).append([noted(String(each)), noted(String(each + 1))]);
      })();
      const seen: number[] = [];
      for await (const { position, data } of other.subscribe()) {
        expect(data).toBe(String(position));
        seen.push(position);
        if (position === 40) break;
      }
      await appending;
      expect(seen).toEqual(numbers(1, 40));
    });

    it("gives only matching events behind `after`", async () => {
      const store = await storeWith(make, ...shop);
      const seen: number[] = [];
      for await (const { position } of store.subscribe({ types: ["Sold"] }, { after: 2 })) {
        seen.push(position);
        if (seen.length === 1) for (const event of shop) await store.append(event);
        if (position === 12) break;
      }
      expect(seen).toEqual([4, 6, 8, 10, 12]);
    });

    it("waits when there is no event yet, and ends when its signal is aborted", async () => {
      const store = await storeWith(make);
      const over = new AbortController();
      const seen: number[] = [];
      const following = (async () => {
        for await (const { position } of store.subscribe("all", { signal: over.signal })) seen.push(position);
      })();
      // A later read has ended: an event would have been seen by now.
      expect(await listOf(store.read())).toEqual([]);
      expect(seen).toEqual([]);
      await store.append(noted("1"));
      while (seen.length === 0) await sleep(5);
      over.abort(new Error("enough"));
      await following;
      expect(seen).toEqual([1]);
    });

    it.each([-1, 1.5, Number.NaN, Infinity])("refuses %d as `after` at once", async (after) => {
      const store = await storeWith(make);
      expect(() => store.subscribe("all", { after })).toThrow(RangeError);
    });
  });
}

function describeWaiting(make: LogSiteMaker): void {
  describe("an append that has to wait", () => {
    it("is not made when its signal was aborted before", async () => {
      const store = await storeWith(make);
      const reason = new Error("never mind");
      expect(await failureOf(store.append(noted("never"), { signal: AbortSignal.abort(reason) }))).toBe(reason);
      expect(await store.head()).toBe(0);
    });

    it("is made or not, as its answer says, when its signal is aborted on the way", async () => {
      const store = await storeWith(make, noted("1"));
      const told: [string, boolean][] = [];
      for (let turns = 0; turns < 12; turns++) {
        const controller = new AbortController();
        const name = `try ${turns}`;
        const appending = store.append(noted(name), { signal: controller.signal }).then(
          () => told.push([name, true]),
          (error: unknown) => {
            expect(error).toBe(controller.signal.reason);
            told.push([name, false]);
          },
        );
        for (let turn = 0; turn < turns; turn++) await Promise.resolve();
        controller.abort(new Error("never mind"));
        await appending;
      }
      const there = new Set((await listOf(store.read())).map(({ data }) => data));
      for (const [name, isMade] of told) expect([name, there.has(name)]).toEqual([name, isMade]);
      // Cancelled at once, it is never made; and it never hangs.
      expect(told[0]).toEqual(["try 0", false]);
    });

    it("leaves no listener on its signal", async () => {
      const store = await storeWith(make);
      const { signal } = new AbortController();
      for (let each = 0; each < 3; each++) await store.append(noted("1"), { signal });
      expect(getEventListeners(signal, "abort")).toEqual([]);
    });

    it("is made with a timeout of 0 when the gate is free", async () => {
      const store = await storeWith(make);
      expect(await store.append(noted("1"), { timeoutMs: 0 })).toMatchObject({ first: 1 });
      expect(await store.append(noted("2"), { timeoutMs: Infinity })).toMatchObject({ first: 2 });
    });

    it.each([Number.NaN, "5" as unknown as number])("is refused with %j as its timeout", async (timeoutMs) => {
      const store = await storeWith(make);
      expect(await failureOf(store.append(noted("never"), { timeoutMs }))).toBeInstanceOf(RangeError);
      expect(await store.head()).toBe(0);
    });
  });
}

function describeClosing(make: LogSiteMaker): void {
  describe("close", () => {
    it("finishes the calls that were made before, and refuses later ones", async () => {
      const site = await make();
      const store = await site.open();
      await store.append({ ...noted("1"), id: "a" });
      const begun = [store.append(noted("2")), store.append(noted("3"))];
      // Until it is queued, which takes a few microtasks.
      for (let turn = 0; turn < 20; turn++) await Promise.resolve();
      await Promise.all([store.close(), store.close()]);
      expect(await Promise.all(begun)).toMatchObject([{ first: 2 }, { first: 3 }]);
      const refused = [
        store.append(noted("4")),
        store.head(),
        store.last(),
        listOf(store.read()),
        listOf(store.read({ types: ["Noted"] })),
        listOf(store.subscribe()),
        store.addTags([1], ["a"]),
        store.verify(),
      ];
      for (const promise of refused) expect(await failureOf(promise)).toMatchObject(closed);
      await store.close();
      await store[Symbol.asyncDispose]();
      if (site.isShared) expect(await (await site.open(smallSegments)).head()).toBe(3);
    });

    it("ends a subscription that waits, with CLOSED", async () => {
      const store = await storeWith(make, noted("1"));
      const following = failureOf(listOf(store.subscribe()));
      // Time passes: so that it waits by then. If it does not, it ends with the same error.
      await sleep(20);
      await store.close();
      expect(await following).toMatchObject(closed);
    });

    it("of a store that was never used does nothing", async () => {
      await (await storeWith(make)).close();
    });

    it("lets a read that is under way end, or rejects it with CLOSED", async () => {
      const store = await storeWith(make, ...shop, ...shop);
      const queries = ["all", { types: ["Sold"] }] as const;
      const readings = queries.map((query) => store.read(query)[Symbol.asyncIterator]());
      for (const reading of readings) await reading.next();
      await store.close();
      for (const reading of readings)
        try {
          while ((await reading.next()).done !== true);
        } catch (error) {
          expect(error).toMatchObject(closed);
        }
    });
  });
}
