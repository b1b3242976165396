// Read models: documents that follow the log, with one writer at a time and any number of readers,
// which see whole batches.
import { describe, expect, test, vi } from "vitest";
import type { EventStore } from "../../../src/events/model/event-store.ts";
import type { Projection } from "../../../src/events/projection/definition.ts";
import { openProjection } from "../../../src/events/projection/projection.ts";
import { diskError } from "../../../src/ports/disk-error.ts";
import { kinds, LogWorld, withDisk } from "../follow/log-world.ts";
import { entriesOf, removed, shelves, sold, stocked, type Shelf, type ShopEvent } from "./shelf.ts";

async function filesOf(world: LogWorld): Promise<string[]> {
  const { disk } = await world.ports();
  const files: string[] = [];
  const root = `${world.directory}/projections/shelves`;
  for (const generation of (await disk.list(root)).filter((name) => name !== "catalog"))
    for (const shard of (await disk.list(`${root}/${generation}`)).filter((name) => name !== "checkpoint"))
      files.push(...(await disk.list(`${root}/${generation}/${shard}`)));
  return files;
}

async function runTo(store: EventStore<ShopEvent>, projection: Projection<Shelf>): Promise<void> {
  await using _running = projection.run();
  await projection.waitUntilProcessed(await store.head());
}

describe.each(kinds)("on %s", (kind) => {
  test("documents follow the events that touch them, and every process reads them", async () => {
    const world = await LogWorld.make(kind);
    const [store, other] = [await world.open<ShopEvent>(), await world.open<ShopEvent>()];
    await store.append([stocked("tea", 5), stocked("milk", 2)]);
    const projection = await openProjection(store, shelves());
    expect(await projection.get("tea")).toBe(undefined);
    expect(await projection.position()).toBe(0);
    await using _running = projection.run();
    await projection.waitUntilProcessed(2);
    const elsewhere = await openProjection(other, shelves());
    expect(await elsewhere.get("tea")).toEqual({ count: 5, events: 1 });
    const { last } = await other.append([sold("tea", 1), sold("tea", 2), stocked("a/b:*?", 1)]);
    await elsewhere.waitUntilProcessed(last);
    expect(await entriesOf(elsewhere.all())).toEqual({
      tea: { count: 2, events: 3 },
      milk: { count: 2, events: 1 },
      "a/b:*?": { count: 1, events: 1 },
    });
    expect(await elsewhere.get("coffee")).toBe(undefined);
  });

  test("a deleted document is gone, leaves no file, and can come back", async () => {
    const world = await LogWorld.make(kind);
    const store = await world.open<ShopEvent>();
    const projection = await openProjection(store, shelves());
    await using _running = projection.run();
    for (const event of [stocked("tea", 5), removed("tea"), stocked("milk", 1), sold("milk", 1)]) {
      const { last } = await store.append(event);
      await projection.waitUntilProcessed(last);
    }
    expect(await projection.get("tea")).toBe(undefined);
    expect(await entriesOf(projection.all())).toEqual({ milk: { count: 0, events: 2 } });
    await vi.waitFor(async () => expect(await filesOf(world)).toHaveLength(1));
    const { last } = await store.append(stocked("tea", 9));
    await projection.waitUntilProcessed(last);
    expect(await projection.get("tea")).toEqual({ count: 9, events: 1 });
  });

  test("documents are found by their tags, as they are now", async () => {
    const world = await LogWorld.make(kind);
    const [store, other] = [await world.open<ShopEvent>(), await world.open<ShopEvent>()];
    const projection = await openProjection(store, shelves());
    const elsewhere = await openProjection(other, shelves());
    await using _running = projection.run();
    const first = await store.append([stocked("tea", 5), stocked("milk", 2), stocked("salt", 5)]);
    await projection.waitUntilProcessed(first.last);
    expect(Object.keys(await entriesOf(elsewhere.byTags(["count:5", "stocked"]))).sort()).toEqual(["salt", "tea"]);
    const second = await store.append([sold("tea", 5), removed("salt"), stocked("milk", 3)]);
    await elsewhere.waitUntilProcessed(second.last);
    expect(await entriesOf(elsewhere.byTags(["count:5", "stocked"]))).toEqual({ milk: { count: 5, events: 2 } });
    expect(Object.keys(await entriesOf(elsewhere.byTags(["empty"])))).toEqual(["tea"]);
    expect(Object.keys(await entriesOf(elsewhere.byTags([]))).sort()).toEqual(["milk", "tea"]);
  });

  test("of two processes that run a projection one works, and the other takes over", async () => {
    const world = await LogWorld.make(kind);
    const [one, other] = [await world.open<ShopEvent>(), await world.open<ShopEvent>()];
    const applied: string[] = [];
    const spying = (who: string) => {
      const definition = shelves();
      return shelves({
        apply: (state, event, key) => {
          applied.push(`${who} ${event.position}`);
          return definition.apply(state, event, key);
        },
      });
    };
    const [mine, theirs] = [await openProjection(one, spying("one")), await openProjection(other, spying("other"))];
    const first = mine.run();
    await one.append(stocked("tea", 1));
    await mine.waitUntilProcessed(1);
    const second = theirs.run();
    await one.append(stocked("tea", 1));
    await theirs.waitUntilProcessed(2);
    await one.close();
    await first.done;
    await other.append(stocked("tea", 1));
    await theirs.waitUntilProcessed(3);
    expect(applied).toEqual(["one 1", "one 2", "other 3"]);
    expect(await theirs.get("tea")).toEqual({ count: 3, events: 3 });
    await second.stop();
    await second.done;
  });

  test("many events are folded in memory, and each document that they touch is written once", async () => {
    const world = await LogWorld.make(kind);
    let writes = 0;
    const store = await world.open<ShopEvent>({
      tamper: (ports) =>
        withDisk(ports, {
          createFile: async (path, ...rest) => {
            if (/projections\/shelves\/[0-9]{10}\/[0-9a-f]{2}\//.test(path)) writes++;
            await ports.disk.createFile(path, ...rest);
          },
        }),
    });
    await store.append(Array.from({ length: 900 }, (_each, index) => stocked(`sku ${index % 10}`, 1)));
    const projection = await openProjection(store, shelves());
    await runTo(store, projection);
    expect(await projection.get("sku 3")).toEqual({ count: 90, events: 90 });
    expect(writes).toBe(10);
  });
});

test("an event can touch several documents, or none", async () => {
  const world = await LogWorld.make();
  const store = await world.open<ShopEvent>();
  await store.append([stocked("tea", 1), stocked("tea", 2), stocked("none", 3)]);
  const projection = await openProjection(store, {
    name: "counts",
    query: "all",
    key: (event) => (event.position === 3 ? undefined : ["all", `at ${event.position}`, "all"]),
    apply: (state: number | undefined) => (state ?? 0) + 1,
  });
  await using _running = projection.run();
  await projection.waitUntilProcessed(3);
  expect(await entriesOf(projection.all())).toEqual({ all: 2, "at 1": 1, "at 2": 1 });
});

test("an `apply` that throws ends the run with that error, and nothing of the batch counts", async () => {
  const world = await LogWorld.make();
  const store = await world.open<ShopEvent>();
  await store.append([stocked("tea", 1), stocked("milk", 1)]);
  const failure = new Error("sour");
  const { apply } = shelves();
  const failing = await openProjection(
    store,
    shelves({
      apply: (state, event, key) => {
        if (key === "milk") throw failure;
        return apply(state, event, key);
      },
    }),
  );
  await expect(failing.run().done).rejects.toBe(failure);
  expect(await failing.position()).toBe(0);
  expect(await failing.get("tea")).toBe(undefined);
  const mended = await openProjection(store, shelves());
  await runTo(store, mended);
  expect(Object.keys(await entriesOf(mended.all())).sort()).toEqual(["milk", "tea"]);
});

test("documents without a checkpoint do not count after a kill, and the next process folds their events again", async () => {
  const world = await LogWorld.make();
  let isDead = false;
  const hang = new Promise<never>(() => undefined);
  const doomed = await world.open<ShopEvent>({
    leaseMs: 300,
    tamper: (ports) => ({
      // Killed between its documents and their checkpoint.
      ...withDisk(ports, {
        link: async (from, to) => {
          if (isDead && to.includes("/checkpoint/")) await hang;
          await ports.disk.link(from, to);
        },
      }),
      // Nothing of the killed process reaches the disk any more.
      heart: {
        start: () => ({
          lastBeat: () => ({ monotonicMs: ports.clock.monotonicMs(), wallMs: ports.clock.wallMs() }),
          stop: async () => undefined,
        }),
      },
    }),
  });
  const next = await world.open<ShopEvent>({ leaseMs: 300 });
  await next.append(stocked("tea", 1));
  const before = await openProjection(doomed, shelves());
  const running = before.run();
  await before.waitUntilProcessed(1);
  isDead = true;
  await next.append([sold("tea", 1), stocked("milk", 1)]);
  const after = await openProjection(next, shelves());
  await vi.waitFor(async () => expect(await filesOf(world)).toHaveLength(3));
  expect(await entriesOf(after.all())).toEqual({ tea: { count: 1, events: 1 } });
  await using _running = after.run();
  await after.waitUntilProcessed(3);
  expect(await entriesOf(after.all())).toEqual({ tea: { count: 0, events: 2 }, milk: { count: 1, events: 1 } });
  await vi.waitFor(async () => expect(await filesOf(world)).toHaveLength(2));
  await running.stop({ drainMs: 0 });
});

test("readers see a document at every moment while it is replaced over and over", async () => {
  const world = await LogWorld.make("disk");
  const [store, other] = [await world.open<ShopEvent>(), await world.open<ShopEvent>()];
  const projection = await openProjection(store, shelves());
  const elsewhere = await openProjection(other, shelves());
  await store.append(stocked("tea", 0));
  const running = projection.run();
  await projection.waitUntilProcessed(1);
  const until = Date.now() + 1500;
  const writing = (async () => {
    while (Date.now() < until) await store.append(stocked("tea", 1));
  })();
  let seen = 0;
  let looks = 0;
  while (Date.now() < until) {
    const state = looks++ % 3 === 0 ? (await entriesOf(elsewhere.all())).tea : await elsewhere.get("tea");
    expect(state).toBeDefined();
    expect(state!.events).toBeGreaterThanOrEqual(seen);
    seen = state!.events;
    // Reads of a local disk do not yield: the writer needs a turn.
    await new Promise((resolve) => setImmediate(resolve));
  }
  await writing;
  await running.stop();
  expect(seen).toBeGreaterThan(5);
});

test("a document that is replaced between two looks of a reader is not taken for absent", async () => {
  const world = await LogWorld.make();
  const store = await world.open<ShopEvent>();
  const projection = await openProjection(store, shelves());
  await using _running = projection.run();
  await projection.waitUntilProcessed((await store.append(stocked("tea", 1))).last);
  let isWatching = false;
  const other = await world.open<ShopEvent>({
    tamper: (ports) =>
      withDisk(ports, {
        list: async (path) => {
          if (isWatching && /\/[0-9a-f]{2}$/.test(path)) {
            isWatching = false;
            // After the reader has read the checkpoint: every file that counted then is gone now.
            await projection.waitUntilProcessed((await store.append(stocked("tea", 1))).last);
            await vi.waitFor(async () => expect(await filesOf(world)).toHaveLength(1));
          }
          return await ports.disk.list(path);
        },
      }),
  });
  const elsewhere = await openProjection(other, shelves());
  for (const find of [() => elsewhere.get("tea"), async () => (await entriesOf(elsewhere.all())).tea]) {
    expect(await find()).toBeDefined();
    isWatching = true;
    expect(await find()).toBeDefined();
  }
});

test("a deleted document stays deleted, although an older file of it could not be removed", async () => {
  const world = await LogWorld.make();
  let busy = 0;
  const store = await world.open<ShopEvent>({
    tamper: (ports) =>
      withDisk(ports, {
        unlink: async (path) => {
          // Another process has the first replaced file open, as on Windows.
          if (/\/projections\/shelves\/.*-0*1$|-0*1\.json$/.test(path) && busy++ < 3)
            throw diskError("EBUSY", "unlink", path);
          await ports.disk.unlink(path);
        },
      }),
  });
  const projection = await openProjection(store, shelves());
  await using _running = projection.run();
  for (const event of [stocked("tea", 1), stocked("tea", 2), removed("tea")])
    await projection.waitUntilProcessed((await store.append(event)).last);
  expect(busy).toBeGreaterThan(0);
  expect(await projection.get("tea")).toBeUndefined();
  const other = await world.open<ShopEvent>();
  expect(await (await openProjection(other, shelves())).get("tea")).toBeUndefined();
});

test("wrong definitions are refused when the projection is opened", async () => {
  const world = await LogWorld.make();
  const store = await world.open<ShopEvent>();
  await expect(openProjection(store, shelves({ name: "" }))).rejects.toMatchObject({ code: "INVALID_NAME" });
  await expect(openProjection(store, shelves({ version: 0 }))).rejects.toThrow(RangeError);
  await expect(openProjection(store, shelves({ query: [] }))).rejects.toThrow(TypeError);
  await expect(openProjection({} as EventStore<ShopEvent>, shelves())).rejects.toThrow(TypeError);
});
