// Callers may change the objects that they gave or got: the store is not affected.
import { expect, it } from "vitest";
import { join } from "node:path";
import { openEvents, type EventStore } from "../../src/events/index.ts";
import { makeScratch } from "../sites/scratch.ts";

async function withEvents(work: (events: EventStore) => Promise<void>): Promise<void> {
  await using events = await openEvents(join(makeScratch(), "log"));
  await work(events);
}

it("a reader that changes an event does not change it for the next reader", () =>
  withEvents(async (events) => {
    await events.append([
      { type: "Stocked", data: { left: 3 }, tags: ["sku:1"], id: "one" },
      { type: "Stocked", data: { left: 7 }, tags: ["sku:2"] },
    ]);
    for (const left of [3, 3, 3]) {
      const event = await events.last({ tags: ["sku:1"] });
      expect(event?.data).toEqual({ left });
      if (event === undefined) return;
      (event.data as { left: number }).left--;
      (event.tags as string[]).push("spoiled");
    }
    expect((await events.last({ tags: ["sku:2"] }))?.data).toEqual({ left: 7 });
    // Nor does it change the comparison with a repeated append.
    const again = { type: "Stocked", data: { left: 3 }, tags: ["sku:1"], id: "one" };
    expect(await events.append(again)).toEqual({ first: 1, last: 1, repeated: true });
    expect(await events.last({ tags: ["spoiled"] })).toBeUndefined();
  }));

it("two concurrent readers get different objects", () =>
  withEvents(async (events) => {
    await events.append({ type: "Stocked", data: { left: 3 }, tags: ["sku:1"] });
    const [one, other] = await Promise.all([events.last({ tags: ["sku:1"] }), events.last({ tags: ["sku:1"] })]);
    expect(one?.data).toEqual(other?.data);
    expect(one?.data).not.toBe(other?.data);
  }));

it("tags are added to the positions of the call, though the caller changes its list", () =>
  withEvents(async (events) => {
    await events.append({ type: "Sold", data: null });
    const positions = [1];
    const adding = events.addTags(positions, ["refunded"]);
    positions.length = 0;
    await adding;
    const condition = { failIfEventsMatch: { tags: ["refunded"] } };
    await expect(events.append({ type: "Sold", data: null }, { condition })).rejects.toMatchObject({
      code: "APPEND_CONDITION_FAILED",
    });
  }));
