import { describe, expectTypeOf, it } from "vitest";
import {
  decide,
  model,
  modelsOf,
  openProjection,
  type EventSchemas,
  type EventStore,
  type NewEvent,
} from "../../../src/events/index.ts";

type Sold = NewEvent<"Sold", { sku: string; amount: number }>;
type Stocked = NewEvent<"Stocked", { sku: string; places: string[] }>;
type Shop = Sold | Stocked;

const shopModel = modelsOf<Shop>();
const sold = shopModel({ query: { types: ["Sold"] }, initial: 0, apply: (n, { data }) => n + data.amount });
const stocked = shopModel({
  query: { types: ["Stocked"], tags: ["sku:1"] },
  initial: undefined as string | undefined,
  apply: (_, { data }) => data.places[0],
});

// Nothing here runs: the compiler is the test.
const store = undefined as unknown as EventStore<Shop>;
const compiled = (program: () => unknown): void => void program;

describe("the types of a model", () => {
  it("narrow the event by the types of the query", () => {
    shopModel({
      query: { types: ["Sold"] },
      initial: 0,
      apply: (n, event) => {
        expectTypeOf(event.type).toEqualTypeOf<"Sold">();
        expectTypeOf(event.data).toEqualTypeOf<{ sku: string; amount: number }>();
        expectTypeOf(event.position).toEqualTypeOf<number>();
        return n;
      },
    });
  });

  it("narrow an event that has several types", () => {
    type Moved = NewEvent<"Sold" | "Returned", { pieces: number }>;
    const moved = undefined as unknown as EventStore<Moved | Stocked>;
    compiled(async () => {
      for await (const event of moved.read({ types: ["Returned"] })) {
        expectTypeOf(event.type).toEqualTypeOf<"Returned">();
        expectTypeOf(event.data).toEqualTypeOf<{ pieces: number }>();
      }
      for await (const { data } of moved.read({ types: ["Returned", "Stocked"] }))
        expectTypeOf(data).toEqualTypeOf<{ pieces: number } | Stocked["data"]>();
    });
    const schemas: EventSchemas<Moved> = {
      Sold: {
        version: 2,
        upcast: (data) => ({ pieces: Number(data) }),
        writes: { version: 1, downcast: ({ pieces }) => pieces },
      },
    };
    expectTypeOf(schemas.Returned).toEqualTypeOf<EventSchemas<Moved>["Sold"]>();
  });

  it("give all events for a query by tags, for several items that name all types, and for all", () => {
    const queries = [{ tags: ["sku:1"] }] as const;
    shopModel({
      query: queries,
      initial: 0,
      apply: (n, event) => {
        expectTypeOf(event.type).toEqualTypeOf<"Sold" | "Stocked">();
        return n;
      },
    });
    shopModel({
      query: [{ types: ["Sold"], tags: ["a"] }, { types: ["Stocked"] }],
      initial: 0,
      apply: (n, event) => {
        expectTypeOf(event.type).toEqualTypeOf<"Sold" | "Stocked">();
        return n;
      },
    });
    shopModel({
      query: "all",
      initial: 0,
      apply: (n, event) => {
        expectTypeOf(event.type).toEqualTypeOf<"Sold" | "Stocked">();
        return n;
      },
    });
  });

  it("refuse a type that no event has, and an apply that returns another state", () => {
    compiled(() => {
      // @ts-expect-error there is no such event
      shopModel({ query: { types: ["Lost"] }, initial: 0, apply: (n: number) => n });
      // @ts-expect-error the state is a number
      shopModel({ query: { types: ["Sold"] }, initial: 0, apply: () => "many" });
    });
  });

  it("can be written by hand", () => {
    const amount = model<number, Sold>({ query: { types: ["Sold"] }, initial: 0, apply: (n, e) => n + e.data.amount });
    expectTypeOf(amount.initial).toEqualTypeOf<number>();
  });
});

describe("the types of a decision", () => {
  it("are inferred in a function that does not know the events", () => {
    compiled(() => {
      const appendOne = <E extends NewEvent>(any: EventStore<E>, event: E) => decide(any, {}, () => event);
      return appendOne<Shop>(store, { type: "Sold", data: { sku: "1", amount: 1 } });
    });
  });

  it("are the states by the names of the models", () => {
    compiled(() =>
      decide(store, { sold, stocked }, (states, { attempt, head }) => {
        expectTypeOf(states).toEqualTypeOf<{ readonly sold: number; readonly stocked: string | undefined }>();
        expectTypeOf([attempt, head]).toEqualTypeOf<number[]>();
        return [];
      }),
    );
  });

  it("refuse an event that the store does not know", () => {
    compiled(async () => {
      // @ts-expect-error there is no such event
      await decide(store, { sold }, () => ({ type: "Lost", data: {} }));
      // @ts-expect-error the data are of another event
      await decide(store, { sold }, () => ({ type: "Sold", data: { sku: "1", places: [] } }));
      // @ts-expect-error the same in a list
      await decide(store, { sold }, () => [{ type: "Lost", data: {} }]);
    });
  });

  it("take one event, a list, nothing, and a promise of each", () => {
    compiled(async () => {
      await decide(store, { sold }, () => ({ type: "Sold", data: { sku: "1", amount: 1 }, tags: ["sku:1"] }));
      await decide(store, { sold }, async () => ({ type: "Sold", data: { sku: "1", amount: 1 } }));
      await decide(store, { sold }, ({ sold }) => (sold > 0 ? [] : { type: "Sold", data: { sku: "1", amount: 1 } }));
      await decide(store, { sold }, () => [{ type: "Stocked", data: { sku: "1", places: ["a"] } }]);
      await decide(store, { sold }, () => ({ type: "Stocked", data: { sku: "1", places: ["a"] } }));
    });
  });

  it("take a list that was made before, and nested data", () => {
    type Sku = string & { readonly brand: "sku" };
    type Moved = NewEvent<"Moved", { sku: Sku; way: { from: string; to?: string }[]; note: string | null }>;
    const house = undefined as unknown as EventStore<Moved>;
    compiled(async () => {
      const events: Moved[] = [];
      await decide(house, {}, () => events);
      await decide(house, {}, () => ({ events, result: 1 }));
      const sku = "a" as Sku;
      await decide(house, {}, () => ({ type: "Moved", data: { sku, way: [{ from: "a" }], note: null } }));
      // @ts-expect-error any text is not enough
      await decide(house, {}, () => ({ type: "Moved", data: { sku: "a", way: [], note: null } }));
    });
  });

  it("give the result of the decision to the caller", () => {
    compiled(async () => {
      const number = await decide(store, { sold }, ({ sold }) => ({ events: [], result: sold + 1 }));
      expectTypeOf(number.result).toEqualTypeOf<number>();
      const maybe = await decide(store, { sold }, async ({ sold }) => (sold > 1 ? { events: [], result: sold } : []));
      expectTypeOf(maybe.result).toEqualTypeOf<number | undefined>();
      const none = await decide(store, {}, () => []);
      expectTypeOf(none.result).toEqualTypeOf<undefined>();
    });
  });
});

describe("the types of a read model", () => {
  it("narrow the event by the types of the query", () => {
    compiled(() =>
      openProjection(store, {
        name: "sold",
        query: { types: ["Sold"] },
        key: (event) => {
          expectTypeOf(event.type).toEqualTypeOf<"Sold">();
          return event.data.sku;
        },
        apply: (pieces: number | undefined, event) => {
          expectTypeOf(event.data.amount).toEqualTypeOf<number>();
          return (pieces ?? 0) + event.data.amount;
        },
      }),
    );
    compiled(() =>
      openProjection(store, {
        name: "all",
        query: "all",
        key: (event) => {
          expectTypeOf(event.type).toEqualTypeOf<"Sold" | "Stocked">();
          return event.data.sku;
        },
        apply: (count: number | undefined) => (count ?? 0) + 1,
      }),
    );
  });
});
