import { describe, expect, expectTypeOf, it } from "vitest";
import { decide, given, memoryEvents, type EventStore } from "../../../src/events/index.ts";
import { sold, stocked, stockOf, type Shop } from "./shop.ts";

class SoldOut extends Error {}

const sell = async (store: EventStore<Shop>, sku: string, amount: number) =>
  await decide(store, { stock: stockOf(sku) }, ({ stock }) => {
    if (stock < amount) throw new SoldOut(`only ${stock} of ${sku} are left`);
    return { events: [sold(sku, amount)], result: stock - amount };
  });

/** The message of a check that fails. */
const failureOf = async (check: Promise<unknown>): Promise<Error> =>
  await check.then(
    () => new Error("it held"),
    (error: unknown) => error as Error,
  );

describe("given, when, then", () => {
  it("check what a decision appends", async () => {
    await given<Shop>([stocked("a", 3)])
      .when((store) => sell(store, "a", 2))
      .thenEvents([sold("a", 2)]);
  });

  it("check the result of a decision, and both in one chain", async () => {
    await given<Shop>([stocked("a", 3)])
      .when((store) => sell(store, "a", 2))
      .thenEvents([sold("a", 2)])
      .thenResult(1);
  });

  it("check the result of a function that does not return the result of decide", async () => {
    await given<Shop>([stocked("a", 3)])
      .when(async (store) => (await sell(store, "a", 2)).attempts)
      .thenResult(1);
  });

  it("check a refusal by its message, its class, or a function", async () => {
    const outcome = given<Shop>([stocked("a", 1)]).when((store) => sell(store, "a", 2));
    await outcome.thenRefuses();
    await outcome.thenRefuses(/only 1 of a/);
    await outcome.thenRefuses(SoldOut);
    await outcome.thenRefuses((error) => error instanceof Error && error.message.endsWith("left"));
  });

  it("begin with an empty log if no events are given, and check that nothing was appended", async () => {
    await given<Shop>([])
      .when((store) => decide(store, { stock: stockOf("a") }, () => []))
      .thenNothing();
  });

  it("compare events as a log gives them back: tags are a set, and undefined fields are absent", async () => {
    const data = { ...sold("a", 1).data, note: undefined };
    await given<Shop>([stocked("a", 1)])
      .when((store) => store.append({ type: "Sold", data, tags: ["x", "sku:a", "x"] }))
      .thenEvents([{ type: "Sold", data, tags: ["sku:a", "x"] }]);
  });

  it("accept a race of two decisions", async () => {
    await given<Shop>([stocked("a", 1)])
      .when((store) => Promise.allSettled([sell(store, "a", 1), sell(store, "a", 1)]))
      .thenEvents([sold("a", 1)]);
  });

  it("accept a store of the caller", async () => {
    await given<Shop>([stocked("a", 1)], memoryEvents<Shop>())
      .when((store) => sell(store, "a", 1))
      .thenEvents([sold("a", 1)]);
  });

  it("know the type of the result", () => {
    const outcome = given<Shop>([stocked("a", 1)]).when((store: EventStore<Shop>) => sell(store, "a", 1));
    expectTypeOf(outcome.thenResult).parameter(0).toEqualTypeOf<number>();
  });
});

describe("a failure", () => {
  const selling = given<Shop>([stocked("a", 3)]).when((store: EventStore<Shop>) => sell(store, "a", 2));
  const refusing = given<Shop>([stocked("a", 1)]).when((store: EventStore<Shop>) => sell(store, "a", 2));

  it("shows the lines that differ between the expected and the appended events", async () => {
    const { message } = await failureOf(selling.thenEvents([sold("a", 1)]));
    expect(message).toContain("The appended events differ from the expected ones.");
    expect(message).toMatch(/^- .*amount: 1/m);
    expect(message).toMatch(/^\+ .*amount: 2/m);
    expect(message.split("\n").filter((line) => line.startsWith("-") && line.includes("Sold"))).toHaveLength(0);
  });

  it("is reported for an event too many, one too few, and another order", async () => {
    expect((await failureOf(selling.thenEvents([]))).message).toContain("differ from the expected ones");
    expect((await failureOf(selling.thenEvents([sold("a", 2), sold("a", 2)]))).message).toContain(
      "differ from the expected",
    );
    const twice = given<Shop>([]).when((store) => store.append([sold("a", 1), sold("a", 2)]));
    expect((await failureOf(twice.thenEvents([sold("a", 2), sold("a", 1)]))).message).toContain(
      "differ from the expected",
    );
  });

  it("is reported for other tags", async () => {
    expect((await failureOf(selling.thenEvents([{ ...sold("a", 2), tags: [] }]))).message).toContain("sku:a");
  });

  it("names the refusal when none was expected, also as its cause", async () => {
    for (const check of [refusing.thenEvents([sold("a", 2)]), refusing.thenNothing(), refusing.thenResult(1)]) {
      const failure = await failureOf(check);
      expect(failure.message).toContain("it was refused: Error: only 1 of a are left");
      expect(failure.cause).toBeInstanceOf(SoldOut);
    }
  });

  it("names the appended events when a refusal was expected, and the refusal that came instead of another", async () => {
    expect((await failureOf(selling.thenRefuses())).message).toContain("these events were appended");
    expect((await failureOf(refusing.thenRefuses(/closed/))).message).toContain("only 1 of a are left");
    expect((await failureOf(refusing.thenRefuses(RangeError))).message).toContain("RangeError");
    expect((await failureOf(refusing.thenRefuses(() => false))).message).toContain("only 1 of a are left");
  });

  it("is reported when an event was appended before the refusal", async () => {
    const late = given<Shop>([]).when(async (store) => {
      await store.append(sold("a", 1));
      throw new SoldOut("too late");
    });
    expect((await failureOf(late.thenRefuses(SoldOut))).message).toContain("had already appended something");
  });

  it("is reported for another result, and for an event when none was expected", async () => {
    expect((await failureOf(selling.thenResult(7))).message).toMatch(/- 7\n\+ 1/);
    expect((await failureOf(selling.thenNothing())).message).toContain("Nothing should have been appended");
  });

  it("of an earlier check in a chain is not hidden by a later one", async () => {
    expect((await failureOf(selling.thenEvents([]).thenResult(1))).message).toContain("differ from the expected ones");
  });

  it("carries both sides for the test runner", async () => {
    expect(await failureOf(selling.thenResult(7))).toMatchObject({ name: "AssertionError", actual: 1, expected: 7 });
  });
});
