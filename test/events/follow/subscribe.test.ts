// Subscriptions: every event once, in order, and then new ones.
import { describe, expect, test } from "vitest";
import type { NewEvent } from "../../../src/common.ts";
import { kinds, LogWorld } from "./log-world.ts";

type Counted = NewEvent<"even", { number: number }> | NewEvent<"odd", { number: number }>;

function counted(number: number): Counted {
  return { type: number % 2 === 0 ? "even" : "odd", data: { number } };
}

describe.each(kinds)("on %s", (kind) => {
  test("a subscription gives the present events and then new ones, each once and in order", async () => {
    const world = await LogWorld.make(kind);
    const [reader, writer] = [await world.open<Counted>(), await world.open<Counted>()];
    for (let number = 1; number <= 5; number++) await writer.append(counted(number));
    const seen: number[] = [];
    const appending = (async () => {
      for (let number = 6; number <= 40; number += 2) await writer.append([counted(number), counted(number + 1)]);
    })();
    for await (const event of reader.subscribe()) {
      seen.push(event.position);
      if (event.position === 41) break;
    }
    await appending;
    expect(seen).toEqual(Array.from({ length: 41 }, (_each, index) => index + 1));
  });

  test("a subscription gives only events that match, after a position", async () => {
    const world = await LogWorld.make(kind);
    const store = await world.open<Counted>();
    for (let number = 1; number <= 6; number++) await store.append(counted(number));
    const seen: number[] = [];
    for await (const event of store.subscribe({ types: ["even"] }, { after: 2 })) {
      seen.push(event.data.number);
      if (seen.length === 1) await store.append([7, 8, 9].map(counted));
      if (seen.length === 3) break;
    }
    expect(seen).toEqual([4, 6, 8]);
  });

  test("an abort ends a subscription without an error, while it waits and between two events", async () => {
    const world = await LogWorld.make(kind);
    const store = await world.open<Counted>();
    await store.append([1, 2, 3].map(counted));
    const stop = new AbortController();
    const seen: number[] = [];
    for await (const event of store.subscribe("all", { signal: stop.signal })) {
      seen.push(event.position);
      if (event.position === 2) stop.abort();
    }
    expect(seen).toEqual([1, 2]);
    const later = new AbortController();
    for await (const event of store.subscribe("all", { signal: later.signal }))
      if (event.position === 3) queueMicrotask(() => later.abort(new Error("enough")));
    for await (const event of store.subscribe("all", { signal: AbortSignal.abort() })) expect(event).toBe(undefined);
  });
});

test("a wrong query or position is refused at the call", async () => {
  const world = await LogWorld.make("memory");
  const store = await world.open();
  expect(() => store.subscribe([])).toThrow(TypeError);
  expect(() => store.subscribe("all", { after: -1 })).toThrow(RangeError);
});
