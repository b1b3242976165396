// Related events: events that a document needs although they do not touch it.
import { describe, expect, test } from "vitest";
import type { NewEvent } from "../../../src/common.ts";
import type { EventStore } from "../../../src/events/model/event-store.ts";
import type { ProjectionDefinition } from "../../../src/events/projection/definition.ts";
import { openProjection } from "../../../src/events/projection/projection.ts";
import { LogWorld } from "../follow/log-world.ts";

type Renamed = NewEvent<"Renamed", { customer: string; name: string }>;
type Ordered = NewEvent<"Ordered", { order: string; customer: string }>;
type Moved = NewEvent<"Moved", { order: string; customer: string }>;
type Cancelled = NewEvent<"Cancelled", { order: string }>;
type OrderEvent = Renamed | Ordered | Moved | Cancelled;

const renamed = (customer: string, name: string): Renamed => ({
  type: "Renamed",
  data: { customer, name },
  tags: [`customer:${customer}`],
});
const ordered = (order: string, customer: string): Ordered => ({ type: "Ordered", data: { order, customer } });
const moved = (order: string, customer: string): Moved => ({ type: "Moved", data: { order, customer } });
const cancelled = (order: string): Cancelled => ({ type: "Cancelled", data: { order } });

/** The events that were applied to an order, in sequence. */
const history: ProjectionDefinition<string[], OrderEvent> = {
  name: "orders",
  query: { types: ["Ordered", "Moved", "Cancelled"] },
  key: (event) => (event.type === "Renamed" ? undefined : event.data.order),
  apply: (state, event) => {
    if (event.type === "Cancelled") return undefined;
    return [...(state ?? []), event.type === "Renamed" ? event.data.name : `${event.type} ${event.data.customer}`];
  },
  related: (event) =>
    "customer" in event.data ? { types: ["Renamed"], tags: [`customer:${event.data.customer}`] } : undefined,
};

/** Folded in one batch, or event by event, with the same result. */
describe.each(["in one batch", "one by one"])("%s", (how) => {
  async function fold(
    events: readonly OrderEvent[],
    definition: ProjectionDefinition<string[], OrderEvent> = history,
  ): Promise<string[] | undefined> {
    const world = await LogWorld.make();
    const store: EventStore<OrderEvent> = await world.open<OrderEvent>();
    const projection = await openProjection(store, definition);
    if (how === "in one batch") await store.append(events);
    await using _running = projection.run();
    if (how === "one by one")
      for (const event of events) await projection.waitUntilProcessed((await store.append(event)).last);
    await projection.waitUntilProcessed(events.length);
    return await projection.get("o");
  }

  test("earlier related events are applied first, in order", async () => {
    const events = [renamed("7", "Ada"), renamed("8", "Bob"), renamed("7", "Ada L."), ordered("o", "7")];
    expect(await fold(events)).toEqual(["Ada", "Ada L.", "Ordered 7"]);
  });

  test("later related events are applied when the document is touched next, each once", async () => {
    const events = [
      renamed("7", "Ada"),
      ordered("o", "7"),
      renamed("7", "Ada L."),
      renamed("8", "Bob"),
      moved("o", "7"),
      moved("o", "7"),
    ];
    expect(await fold(events)).toEqual(["Ada", "Ordered 7", "Ada L.", "Moved 7", "Moved 7"]);
    expect(await fold(events.slice(0, 4))).toEqual(["Ada", "Ordered 7"]);
  });

  test("a query that is new to the document is read from the start, and an old one goes on", async () => {
    const events = [
      renamed("8", "Bob"),
      renamed("7", "Ada"),
      ordered("o", "7"),
      moved("o", "8"),
      renamed("7", "Ada L."),
      renamed("8", "Rob"),
      moved("o", "7"),
    ];
    expect(await fold(events)).toEqual(["Ada", "Ordered 7", "Bob", "Moved 8", "Ada L.", "Moved 7"]);
  });

  test("an event of two queries, or one that touches the document itself, is not applied twice", async () => {
    const wide: ProjectionDefinition<string[], OrderEvent> = {
      ...history,
      related: (event) => (event.type === "Moved" ? "all" : history.related?.(event)),
    };
    const events = [renamed("7", "Ada"), renamed("8", "Bob"), ordered("o", "7"), moved("o", "8"), moved("o", "8")];
    expect(await fold(events, wide)).toEqual(["Ada", "Ordered 7", "Bob", "Moved 8", "Moved 8"]);
  });

  test("a document that was deleted has seen nothing", async () => {
    const events = [renamed("7", "Ada"), ordered("o", "7"), cancelled("o"), ordered("o", "7")];
    expect(await fold(events)).toEqual(["Ada", "Ordered 7"]);
  });
});
