// Rebuilds: beside the current documents, switched in one step at the end, and resumed after a
// crash.
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { accessOf } from "../../../src/events/log/log-access.ts";
import type { ProjectionDefinition } from "../../../src/events/projection/definition.ts";
import { ProjectionFiles } from "../../../src/events/projection/generation.ts";
import { openProjection } from "../../../src/events/projection/projection.ts";
import { kinds, LogWorld, withDisk } from "../follow/log-world.ts";
import { SleepWhileStaging } from "../follow/sleep-while-staging.ts";
import { entriesOf, shelves, sold, stocked, type Shelf, type ShopEvent } from "./shelf.ts";

/** Counts each piece twice. */
function doubled(version: number): ProjectionDefinition<Shelf, ShopEvent> {
  const { apply } = shelves();
  return shelves({
    version,
    apply: (state, event, key) => {
      const once = apply(state, event, key);
      return once === undefined ? undefined : apply(once, event, key);
    },
  });
}

function stock(count: number): ShopEvent[] {
  return Array.from({ length: count }, (_each, index) => stocked(`sku ${index % 50}`, 1));
}

async function generationsOf(world: LogWorld): Promise<string[]> {
  const { disk } = await world.ports();
  return (await disk.list(`${world.directory}/projections/shelves`)).filter((name) => name !== "catalog").sort();
}

describe.each(kinds)("on %s", (kind) => {
  test("a rebuild leaves the old documents readable until all new ones are there, then every reader switches", async () => {
    const world = await LogWorld.make(kind);
    const [store, other] = [await world.open<ShopEvent>(), await world.open<ShopEvent>()];
    await store.append(stock(100));
    const old = await openProjection(store, shelves());
    const first = old.run();
    await old.waitUntilProcessed(100);
    await first.stop();
    const reader = await openProjection(other, shelves());
    expect(await reader.get("sku 7")).toEqual({ count: 2, events: 2 });
    const next = await openProjection(other, doubled(1));
    const progress: [number, number][] = [];
    const rebuilding = next.rebuild({ onProgress: (position, head) => void progress.push([position, head]) });
    expect(await reader.get("sku 7")).toEqual({ count: 2, events: 2 });
    await rebuilding;
    expect(progress.at(-1)).toEqual([100, 100]);
    expect(await reader.get("sku 7")).toEqual({ count: 4, events: 4 });
    expect(await entriesOf(old.byTags(["count:4"]))).toMatchObject({ "sku 7": { count: 4 } });
    expect(Object.keys(await entriesOf(old.all()))).toHaveLength(50);
    expect(await reader.position()).toBe(100);
    expect(await generationsOf(world)).toEqual(["0000000002"]);
    await store.append(sold("sku 7", 1));
    await using _running = next.run();
    await reader.waitUntilProcessed(101);
    expect(await reader.get("sku 7")).toEqual({ count: 2, events: 6 });
  });

  test("a run with a raised version rebuilds", async () => {
    const world = await LogWorld.make(kind);
    const store = await world.open<ShopEvent>();
    await store.append(stock(60));
    const old = await openProjection(store, shelves());
    const first = old.run();
    await old.waitUntilProcessed(60);
    await first.stop();
    const next = await openProjection(store, doubled(2));
    await expect(next.get("sku 1")).rejects.toMatchObject({ code: "RESOURCE_BUSY", worthWaiting: true });
    await using _running = next.run();
    await vi.waitFor(async () => expect(await next.get("sku 1")).toEqual({ count: 4, events: 4 }), { timeout: 10_000 });
  });

  test("a run goes on in the new generation by itself, and a reader never goes back in time", async () => {
    const world = await LogWorld.make(kind);
    const [store, other] = [await world.open<ShopEvent>(), await world.open<ShopEvent>()];
    await store.append(stock(50));
    const projection = await openProjection(store, shelves());
    const running = projection.run();
    await projection.waitUntilProcessed(50);
    const elsewhere = await openProjection(other, shelves());
    let isOver = false;
    const writing = (async () => {
      while (!isOver) {
        const { last } = await store.append(stocked("tea", 1));
        // Read your writes, also during a switch of generations.
        await projection.waitUntilProcessed(last);
        expect((await projection.get("tea"))?.events).toBe(last - 50);
      }
    })();
    for (let round = 0; round < 3; round++) await elsewhere.rebuild();
    isOver = true;
    await writing;
    const { last } = await store.append(stocked("tea", 1));
    await elsewhere.waitUntilProcessed(last);
    expect((await elsewhere.get("tea"))?.events).toBe(last - 50);
    expect(await generationsOf(world)).toEqual(["0000000004"]);
    await running.stop();
    await running.done;
  });

  test("several projections rebuild at the same time", async () => {
    const world = await LogWorld.make(kind);
    const store = await world.open<ShopEvent>();
    await store.append(stock(120));
    const names = ["one", "two", "three"];
    const projections = await Promise.all(names.map((name) => openProjection(store, shelves({ name }))));
    await Promise.all(projections.map((projection) => projection.rebuild()));
    for (const projection of projections) expect(await projection.get("sku 1")).toEqual({ count: 3, events: 3 });
  });
});

test("a rebuild that was broken off goes on where it stopped", async () => {
  const world = await LogWorld.make();
  const store = await world.open<ShopEvent>();
  for (let round = 0; round < 5; round++) await store.append(stock(1000));
  const stop = new AbortController();
  const reason = new Error("enough for today");
  const projection = await openProjection(store, shelves());
  const broken = projection.rebuild({
    signal: stop.signal,
    onProgress: (position) => {
      if (position >= 2000) stop.abort(reason);
    },
  });
  await expect(broken).rejects.toBe(reason);
  expect(await projection.get("sku 1")).toBe(undefined);
  const positions: number[] = [];
  await projection.rebuild({ onProgress: (position) => void positions.push(position) });
  expect(positions[0]).toBeGreaterThan(2000);
  expect(await projection.get("sku 1")).toEqual({ count: 100, events: 100 });
});

test("a rebuild writes a document that changes with every batch once, and not once for each batch", async () => {
  const world = await LogWorld.make();
  let written = 0;
  const store = await world.open<ShopEvent>({
    tamper: (ports) =>
      withDisk(ports, {
        createFile: async (path, bytes, options) => {
          if (/projections\/shelves\/\d+\/(?!checkpoint)/.test(path)) written++;
          await ports.disk.createFile(path, bytes, options);
        },
      }),
  });
  for (let round = 0; round < 5; round++) await store.append(stock(1000));
  const projection = await openProjection(store, shelves());
  await projection.rebuild();
  expect(written).toBe(50);
  expect(await projection.get("sku 1")).toEqual({ count: 100, events: 100 });
});

test("two rebuilds at the same time share one generation", async () => {
  const world = await LogWorld.make();
  const [store, other] = [await world.open<ShopEvent>(), await world.open<ShopEvent>()];
  await store.append(stock(50));
  const [mine, theirs] = [await openProjection(store, shelves()), await openProjection(other, shelves())];
  await Promise.all([mine.rebuild(), theirs.rebuild()]);
  expect(await generationsOf(world)).toEqual(["0000000001"]);
  expect(await mine.get("sku 1")).toEqual({ count: 1, events: 1 });
});

test("closing the store ends a rebuild with CLOSED", async () => {
  const world = await LogWorld.make();
  const store = await world.open<ShopEvent>();
  for (let round = 0; round < 3; round++) await store.append(stock(1000));
  const projection = await openProjection(store, shelves());
  let closing: Promise<void> | undefined;
  const rebuilding = projection.rebuild({ onProgress: () => void (closing ??= store.close()) });
  await expect(rebuilding).rejects.toMatchObject({ code: "CLOSED" });
  await closing;
});

test("a log that was replaced stops the run, and a rebuild mends it", async () => {
  const world = await LogWorld.make("disk");
  const before = await world.open<ShopEvent>();
  await before.append(stock(100));
  const old = await openProjection(before, shelves());
  const running = old.run();
  await old.waitUntilProcessed(100);
  await running.stop();
  await before.close();
  for (const name of await readdir(world.directory))
    if (!["projections", ".holdfast"].includes(name)) await rm(join(world.directory, name), { recursive: true });
  const after = await world.open<ShopEvent>();
  await after.append(stocked("tea", 1));
  const projection = await openProjection(after, shelves());
  await expect(projection.run().done).rejects.toMatchObject({ code: "LOG_REWOUND", position: 100 });
  await projection.rebuild();
  expect(await entriesOf(projection.all())).toEqual({ tea: { count: 1, events: 1 } });
  expect(await projection.position()).toBe(1);
});

test("a removed ground leads to new documents: names with fences from the start would lose to the old ones", async () => {
  const world = await LogWorld.make("disk");
  const before = await world.open<ShopEvent>();
  await before.append(stock(10));
  for (let round = 0; round < 3; round++) {
    const projection = await openProjection(before, shelves());
    await using _running = projection.run();
    await projection.waitUntilProcessed(10);
  }
  await before.close();
  await rm(join(world.directory, ".holdfast"), { recursive: true });
  const after = await world.open<ShopEvent>();
  await after.append(sold("sku 1", 1));
  const projection = await openProjection(after, shelves());
  await using _running = projection.run();
  await projection.waitUntilProcessed(11);
  expect(await projection.get("sku 1")).toEqual({ count: 0, events: 2 });
});

test("after a thousand crashes a new generation begins, so that `cutOff` stays short", async () => {
  const world = await LogWorld.make();
  const store = await world.open<ShopEvent>();
  await store.append(stock(10));
  const projection = await openProjection(store, shelves());
  const first = projection.run();
  await projection.waitUntilProcessed(10);
  await first.stop();
  const { checkpoints } = await (await ProjectionFiles.open(accessOf(store), "shelves")).openGeneration(1);
  const { fence } = (await checkpoints.read()).state;
  for (let crash = 0; crash <= 1000; crash++) await checkpoints.take(fence + crash);
  expect((await checkpoints.read()).state.cutOff).toHaveLength(1000);
  await using _running = projection.run();
  await vi.waitFor(async () => expect(await generationsOf(world)).toEqual(["0000000002"]), { timeout: 20_000 });
  expect(await projection.get("sku 1")).toEqual({ count: 1, events: 1 });
});

test("a reader never sees the new generation at an earlier position than the old one, however late the switch comes", async () => {
  const world = await LogWorld.make();
  const store = await world.open<ShopEvent>();
  await store.append(stock(10));
  const projection = await openProjection(store, shelves());
  await using _running = projection.run();
  await projection.waitUntilProcessed(10);
  const positions: number[] = [];
  let isWatching = false;
  const slow = await world.open<ShopEvent>({
    tamper: (ports) =>
      withDisk(ports, {
        link: async (from, to) => {
          const isSwitch = isWatching && to.includes("/catalog/");
          if (isSwitch) {
            // Time enough for the running process to go on, if it could.
            const { last } = await store.append(stocked("tea", 1));
            await projection.waitUntilProcessed(last, { signal: AbortSignal.timeout(300) }).catch(() => undefined);
            positions.push(await projection.position());
          }
          await ports.disk.link(from, to);
          if (isSwitch) positions.push(await projection.position());
        },
      }),
  });
  const builder = await openProjection(slow, shelves());
  await builder.rebuild({ onProgress: () => void (isWatching = true) });
  expect(positions).toHaveLength(2);
  expect(positions[1]).toBeGreaterThanOrEqual(positions[0]!);
});

test("a run goes on when the generation that it reads first is replaced and removed meanwhile", async () => {
  const world = await LogWorld.make();
  const other = await world.open<ShopEvent>();
  await other.append(stock(50));
  const elsewhere = await openProjection(other, shelves());
  await elsewhere.rebuild();
  const [current = ""] = await generationsOf(world);
  let isReplaced = false;
  const store = await world.open<ShopEvent>({
    tamper: (ports) =>
      withDisk(ports, {
        list: async (path) => {
          if (!isReplaced && path.endsWith(`${current}/checkpoint/epochs`)) {
            isReplaced = true;
            await elsewhere.rebuild();
          }
          return await ports.disk.list(path);
        },
      }),
  });
  const projection = await openProjection(store, shelves());
  await using running = projection.run();
  await other.append(stocked("tea", 1));
  await projection.waitUntilProcessed(51);
  expect(isReplaced).toBe(true);
  await running.stop();
  await running.done;
});

test("a wait for a position waits for documents of its own version", async () => {
  const world = await LogWorld.make();
  const store = await world.open<ShopEvent>();
  await store.append(stock(50));
  const old = await openProjection(store, shelves());
  await old.rebuild();
  await old.waitUntilProcessed(50);
  const next = await openProjection(store, { ...doubled(2), readsFrom: 1 });
  expect(await next.get("sku 7")).toEqual({ count: 1, events: 1 });
  await using _running = next.run();
  await next.waitUntilProcessed(50);
  expect(await next.get("sku 7")).toEqual({ count: 2, events: 2 });
  await old.waitUntilProcessed(50);
});

test.each(["epoch", '"current":{"number":1', '"building":{"number":2', '"current":{"number":2'])(
  "a process that sleeps past its lease while it stages a change of the catalog (%s) goes on with its next session",
  async (what) => {
    // The directory of the process was swept, and the failed write there once ended the rebuild.
    const world = await LogWorld.make();
    const sleep = new SleepWhileStaging((record) => record.includes('"catalog') && record.includes(what));
    const store = await world.open<ShopEvent>({ tamper: (ports) => sleep.tamper(ports) });
    await store.append(stock(10));
    const projection = await openProjection(store, shelves());
    await using _running = projection.run();
    await projection.waitUntilProcessed(10);
    await projection.rebuild();
    expect(await projection.get("sku 7")).toEqual({ count: 1, events: 1 });
    expect(sleep.staged).toBeGreaterThan(1);
  },
);
