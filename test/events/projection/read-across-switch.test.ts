// Reading all documents during a switch of generations: all of one generation or RESOURCE_BUSY,
// never a part of each.
import { expect, test } from "vitest";
import type { EventStore } from "../../../src/events/model/event-store.ts";
import type { Projection } from "../../../src/events/projection/definition.ts";
import { openProjection } from "../../../src/events/projection/projection.ts";
import { LogWorld, withDisk } from "../follow/log-world.ts";
import { entriesOf, shelves, stocked, type Shelf, type ShopEvent } from "./shelf.ts";

/** The same documents under other keys. */
const renamed = shelves({ key: (event) => (event.type === "Named" ? undefined : `new ${event.data.sku}`) });

const ways: [string, (projection: Projection<Shelf>) => AsyncIterable<readonly [string, Shelf]>][] = [
  ["all", (projection) => projection.all()],
  ["byTags", (projection) => projection.byTags(["stocked"])],
];

async function worldWithShelves(): Promise<{ world: LogWorld; store: EventStore<ShopEvent> }> {
  const world = await LogWorld.make();
  const store = await world.open<ShopEvent>();
  await store.append(["tea", "milk", "salt"].map((sku) => stocked(sku, 1)));
  const projection = await openProjection(store, shelves());
  await using _running = projection.run();
  await projection.waitUntilProcessed(3);
  return { world, store };
}

test.each(ways)(
  "%s fails with RESOURCE_BUSY when the read model is rebuilt after the first document",
  async (_name, read) => {
    // The rest was once looked for in the new generation, which has other keys, and left out
    // silently.
    const { world, store } = await worldWithShelves();
    const reader = await openProjection(await world.open<ShopEvent>(), shelves());
    const next = await openProjection(store, renamed);
    const keys: string[] = [];
    const reading = (async () => {
      for await (const [key] of read(reader)) {
        keys.push(key);
        if (keys.length === 1) await next.rebuild();
      }
    })();
    await expect(reading).rejects.toMatchObject({ code: "RESOURCE_BUSY", message: expect.stringContaining("rebuilt") });
    expect(keys).toHaveLength(1);
    expect(Object.keys(await entriesOf(read(reader))).sort()).toEqual(["new milk", "new salt", "new tea"]);
  },
);

test.each(ways)("%s begins again when the read model is rebuilt before the first document", async (_name, read) => {
  const { world, store } = await worldWithShelves();
  const next = await openProjection(store, renamed);
  let isRebuilt = false;
  const other = await world.open<ShopEvent>({
    tamper: (ports) =>
      withDisk(ports, {
        readFile: async (path, bytesMax) => {
          if (!isRebuilt && /\/0000000001\/[0-9a-f]{2}\//.test(path)) {
            isRebuilt = true;
            await next.rebuild();
          }
          return await ports.disk.readFile(path, bytesMax);
        },
      }),
  });
  const reader = await openProjection(other, shelves());
  expect(Object.keys(await entriesOf(read(reader))).sort()).toEqual(["new milk", "new salt", "new tea"]);
  expect(isRebuilt).toBe(true);
});
