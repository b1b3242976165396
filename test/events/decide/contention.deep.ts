// Many decisions that rest on the same events: within one process they queue up, between processes
// they try again.
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { decide, memoryEvents, model, openEvents, type EventStore } from "../../../src/events/index.ts";
import { startChild } from "../../durable/child.ts";
import { makeScratch } from "../../sites/scratch.ts";

const countOf = (tag: string) => model({ query: { tags: [tag] }, initial: 0, apply: (count) => count + 1 });

const sell = (store: EventStore, customer: number) =>
  decide(store, { sold: countOf("sku:lamp"), orders: countOf(`customer:${customer}`) }, ({ sold }) => ({
    events: [{ type: "Sold", data: null, tags: ["sku:lamp", `customer:${customer}`] }],
    result: sold,
  }));

describe("in one process", () => {
  it("a thousand decisions at once on one tag all succeed, each after the events of those before it", async () => {
    const store = memoryEvents();
    const decided = await Promise.all(Array.from({ length: 1000 }, (_, customer) => sell(store, customer % 10)));
    const seen = decided.map(({ result }) => result).sort((one, other) => one - other);
    expect(seen).toEqual(Array.from({ length: 1000 }, (_, index) => index));
  }, 120_000);

  it("a decision meets no conflict of its own process twice", async () => {
    const store = memoryEvents();
    const decided = await Promise.all(Array.from({ length: 50 }, (_, customer) => sell(store, customer)));
    for (const { attempts } of decided) expect(attempts).toBeLessThanOrEqual(2);
    expect(decided.filter(({ attempts }) => attempts === 1)).toHaveLength(1);
  });

  it("a decision that has nothing in common with those in the queue does not wait for them", async () => {
    const store = memoryEvents();
    const order: string[] = [];
    const slow = async (name: string): Promise<void> => {
      await decide(store, { lamps: countOf("sku:lamp") }, async (_, { attempt }) => {
        if (attempt > 1)
          await decide(store, { chairs: countOf("sku:chair") }, () => {
            order.push(name);
            return [];
          });
        return { type: "Sold", data: name, tags: ["sku:lamp"] };
      });
      order.push(`${name} sold`);
    };
    await Promise.all([slow("one"), slow("other")]);
    expect(order).toEqual(["one sold", "other", "other sold"]);
  });

  it("a decision that waits for another one inside itself goes on when its time is up", async () => {
    const store = memoryEvents();
    const inner = () =>
      decide(store, { lamps: countOf("sku:lamp") }, () => [], { timeoutMs: 50 }).then(({ attempts }) => attempts);
    const outer = decide(store, { lamps: countOf("sku:lamp") }, async (_, { attempt }) => {
      if (attempt === 1) await store.append({ type: "Sold", data: null, tags: ["sku:lamp"] });
      else expect(await inner()).toBe(1);
      return { type: "Sold", data: null, tags: ["sku:lamp"] };
    });
    expect((await outer).attempts).toBe(2);
  });

  it("a decision that is aborted in the queue lets no later one pass those before it", async () => {
    const store = memoryEvents();
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => (release = resolve));
    const order: string[] = [];
    let begin = (): void => undefined;
    const isInLine = new Promise<void>((resolve) => (begin = resolve));
    const stand = (name: string, wait?: Promise<void>, signal?: AbortSignal) =>
      decide(
        store,
        { lamps: countOf("sku:lamp") },
        async (_, { attempt }) => {
          if (attempt > 1) begin();
          if (attempt > 1) await wait;
          order.push(name);
          return { type: "Sold", data: name, tags: ["sku:lamp"] };
        },
        { signal },
      );
    // Two at once, so that one of them queues up.
    const both = [stand("one", gate), stand("other", gate)];
    await isInLine;
    const controller = new AbortController();
    const calledOff = stand("called off", undefined, controller.signal);
    const last = stand("last");
    controller.abort(new Error("enough"));
    await expect(calledOff).rejects.toThrow("enough");
    release();
    await Promise.all([...both, last]);
    expect(order).toEqual(["one", "other", "other", "last"]);
  });
});

describe("between processes", () => {
  it("ten tills that sell one article sell all of it, and not one more", async () => {
    const directory = join(makeScratch(), "log");
    const [tills, each] = [10, 20];
    await using store = await openEvents(directory);
    await store.append({ type: "Stocked", data: tills * each, tags: ["sku:lamp"] });
    const till = `
      const { decide, model, openEvents } = await import(args[1]);
      const store = await openEvents(args[0]);
      const stock = model({
        query: { tags: ["sku:lamp"] },
        initial: 0,
        apply: (left, { type, data }) => (type === "Stocked" ? left + data : left - 1),
      });
      say("open");
      await told.next();
      let sold = 0;
      for (; sold < ${each}; sold++)
        await decide(
          store,
          { stock },
          ({ stock }) => {
            if (stock === 0) throw new Error("sold out");
            return { type: "Sold", data: null, tags: ["sku:lamp"] };
          },
          { timeoutMs: 100_000 },
        );
      await store.close();
      say("sold " + sold);
      process.stdin.destroy();`;
    const events = new URL("../../../dist/events/index.js", import.meta.url).href;
    const children = Array.from({ length: tills }, () => startChild(till, directory, events));
    for (const child of children) expect(await child.hear()).toBe("open");
    for (const child of children) child.tell("go");
    for (const child of children) expect(await child.hear()).toBe(`sold ${each}`);
    expect(await store.head()).toBe(1 + tills * each);
  }, 120_000);
});
