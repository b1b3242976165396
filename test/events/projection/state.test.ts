// The next `apply` gets the state that the last one returned, or the work ends with a TypeError. A
// Set, and the promise of an `async apply`, were once written as {}.
import { expect, test } from "vitest";
import { memoryEvents } from "../../../src/events/index.ts";
import type { ProjectionDefinition } from "../../../src/events/projection/definition.ts";
import { openProjection } from "../../../src/events/projection/projection.ts";
import { shelves, sold, stocked, type ShopEvent } from "./shelf.ts";

type Apply = (state: unknown, event: ShopEvent) => unknown;

/** How the work on such a read model ends. */
async function endOf(apply: Apply): Promise<{ readonly failure: unknown; readonly state: unknown }> {
  await using store = memoryEvents<ShopEvent>();
  const { tags: _, ...rest } = shelves();
  const definition = { ...rest, apply } as ProjectionDefinition<unknown, ShopEvent>;
  const projection = await openProjection(store, definition);
  await store.append([stocked("tea", 5), sold("tea", 1)]);
  const failure = await projection.rebuild().then(
    () => undefined,
    (error: unknown) => error,
  );
  return { failure, state: await projection.get("tea") };
}

class Shelf {
  readonly count = 5;
}
const circle: Record<string, unknown> = {};
circle.self = [circle];

test.each<[what: string, apply: Apply]>([
  ["a set that it adds to", (state = new Set<string>(), event) => (state as Set<string>).add(event.type)],
  ["a map inside", () => ({ list: [new Map()] })],
  ["a date, which the next apply would get as a text", () => ({ at: new Date(0) })],
  ["an object of a class, which the next apply would get without its class", () => new Shelf()],
  ["something with another face in JSON", () => ({ toJSON: () => 5 })],
  ["no number", () => ({ count: NaN })],
  ["a list with a hole", () => [1, undefined]],
  ["a function", () => () => 1],
  ["a bigint", () => ({ count: 1n })],
  ["a circle", () => circle],
])("a state that is %s is refused: TypeError with the projection and the event", async (_, apply) => {
  const { failure, state } = await endOf(apply);
  expect(failure).toBeInstanceOf(TypeError);
  expect(failure).toMatchObject({ message: expect.stringMatching(/\bshelves\b.* event 2 must be plain JSON/) });
  expect(state).toBeUndefined();
});

test.each<[what: string, apply: Apply]>([
  ["fulfilled", async () => ({ count: 1 })],
  ["rejected", () => Promise.reject(new Error("it is ignored"))],
])("a promise is refused at the first event, one that is %s too", async (_, apply) => {
  const { failure } = await endOf(apply);
  expect(failure).toBeInstanceOf(TypeError);
  expect(failure).toMatchObject({ message: expect.stringMatching(/\bshelves returned a promise at event 1\b/) });
});

test.each<[what: string, state: unknown, stored?: unknown]>([
  ["null", null],
  ["a text", "tea"],
  ["lists and objects", { list: [1, null, { deep: true }], empty: {} }],
  ["fields without data, which are left out", { count: 1, note: undefined }, { count: 1 }],
  ["an object without a prototype", Object.assign(Object.create(null) as object, { count: 1 }), { count: 1 }],
])("a state can be %s", async (_, given, stored = given) => {
  expect(await endOf(() => given)).toEqual({ failure: undefined, state: stored });
});
