import { describe, expect, expectTypeOf, it } from "vitest";
import { causedBy, memoryEvents, type Causation } from "../../src/events/index.ts";
import { allOf } from "./codec-world.ts";

describe("causedBy", () => {
  it("begins a story with the first event, and passes its id on to all that follow", async () => {
    await using store = memoryEvents();
    await store.append({ type: "Ordered", data: 1, id: "order" });
    const ordered = await store.last();
    if (ordered === undefined) throw new Error("nothing there");
    await store.append({ type: "Paid", data: 2, id: "payment", metadata: causedBy(ordered) });
    const paid = await store.last();
    if (paid === undefined) throw new Error("nothing there");
    await store.append({ type: "Shipped", data: 3, metadata: causedBy(paid, { user: "ada" }) });
    expect((await allOf(store.read())).map(({ metadata }) => metadata)).toEqual([
      {},
      { correlationId: "order", causationId: "order" },
      { correlationId: "order", causationId: "payment", user: "ada" },
    ]);
  });

  it("keeps a correlation that a caller chose, and takes the id of the event where there is none", () => {
    expect(causedBy({ id: "b", metadata: { correlationId: "request-7" } }).correlationId).toBe("request-7");
    for (const correlationId of ["", 7, null, undefined])
      expect(causedBy({ id: "b", metadata: { correlationId } }).correlationId).toBe("b");
  });

  it("does not let other metadata change the two ids", () => {
    const metadata = causedBy({ id: "b", metadata: {} }, { causationId: "x", correlationId: "y", user: "ada" });
    expect(metadata).toEqual({ correlationId: "b", causationId: "b", user: "ada" });
  });

  it("is typed", () => {
    expectTypeOf(causedBy({ id: "b", metadata: {} })).toEqualTypeOf<Causation>();
    expectTypeOf(causedBy({ id: "b", metadata: {} }, { user: "ada" }).user).toEqualTypeOf<string>();
  });
});
