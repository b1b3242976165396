// A small shop for the tests of projections: what is in stock, what it is called, and what was
// taken off the shelf.
import type { NewEvent } from "../../../src/common.ts";
import type { ProjectionDefinition } from "../../../src/events/projection/definition.ts";

export type Stocked = NewEvent<"Stocked", { sku: string; count: number }>;
export type Sold = NewEvent<"Sold", { sku: string; count: number }>;
export type Removed = NewEvent<"Removed", { sku: string }>;
export type Named = NewEvent<"Named", { vendor: string; name: string }>;
export type ShopEvent = Stocked | Sold | Removed | Named;

export interface Shelf {
  readonly count: number;
  readonly events: number;
}

export function stocked(sku: string, count: number): Stocked {
  return { type: "Stocked", data: { sku, count }, tags: [`sku:${sku}`] };
}
export function sold(sku: string, count: number): Sold {
  return { type: "Sold", data: { sku, count }, tags: [`sku:${sku}`] };
}
export function removed(sku: string): Removed {
  return { type: "Removed", data: { sku }, tags: [`sku:${sku}`] };
}

/** How many there are of each thing. */
export function shelves(
  more: Partial<ProjectionDefinition<Shelf, ShopEvent>> = {},
): ProjectionDefinition<Shelf, ShopEvent> {
  return {
    name: "shelves",
    query: { types: ["Stocked", "Sold", "Removed"] },
    key: (event) => (event.type === "Named" ? undefined : event.data.sku),
    apply: (state, event) => {
      const { count, events } = state ?? { count: 0, events: 0 };
      if (event.type === "Stocked") return { count: count + event.data.count, events: events + 1 };
      if (event.type === "Sold") return { count: count - event.data.count, events: events + 1 };
      return undefined;
    },
    tags: ({ count }) => [count > 0 ? "stocked" : "empty", `count:${count}`],
    ...more,
  };
}

export async function entriesOf<S>(entries: AsyncIterable<readonly [string, S]>): Promise<Record<string, S>> {
  const all: Record<string, S> = {};
  for await (const [key, state] of entries) all[key] = state;
  return all;
}
