// Programs with different versions of a read model, side by side: each reads documents of its own version only.
import { describe, expect, test } from "vitest";
import { accessOf } from "../../../src/events/log/log-access.ts";
import { ProjectionFiles } from "../../../src/events/projection/generation.ts";
import { openProjection } from "../../../src/events/projection/projection.ts";
import type { ProjectionDefinition } from "../../../src/events/projection/definition.ts";
import { kinds, LogWorld } from "../follow/log-world.ts";
import { entriesOf, stocked, type ShopEvent } from "./shelf.ts";

/** The shape of a document names its version. */
interface Shape {
  readonly madeBy: number;
  readonly events: number;
}

function shelvesOf(version: number, readsFrom?: number): ProjectionDefinition<Shape, ShopEvent> {
  return {
    name: "shelves",
    version,
    ...(readsFrom !== undefined && { readsFrom }),
    query: { types: ["Stocked"] },
    key: (event) => (event.type === "Stocked" ? event.data.sku : undefined),
    apply: (state, _event) => ({ madeBy: version, events: (state?.events ?? 0) + 1 }),
    tags: () => [`version:${version}`],
  };
}

describe.each(kinds)("on %s", (kind) => {
  test("two versions run side by side in a rolling upgrade, and neither reader gets documents of the other", async () => {
    const world = await LogWorld.make(kind);
    const [oldStore, newStore] = [await world.open<ShopEvent>(), await world.open<ShopEvent>()];
    const { last: first } = await oldStore.append(stocked("tea", 1));
    const old = await openProjection(oldStore, shelvesOf(1));
    const oldRun = old.run();
    await old.waitUntilProcessed(first);
    // The first process of the new version starts.
    const next = await openProjection(newStore, shelvesOf(2));
    await expect(next.get("tea")).rejects.toMatchObject({ code: "RESOURCE_BUSY", worthWaiting: true });
    await expect(entriesOf(next.all())).rejects.toMatchObject({ code: "RESOURCE_BUSY" });
    const nextRun = next.run();
    await next.waitUntilProcessed(first);
    for (const [index, store] of [oldStore, newStore, oldStore].entries()) {
      const { last } = await store.append(stocked("tea", 1));
      await Promise.all([old.waitUntilProcessed(last), next.waitUntilProcessed(last)]);
      expect(await old.get("tea")).toEqual({ madeBy: 1, events: index + 2 });
      expect(await next.get("tea")).toEqual({ madeBy: 2, events: index + 2 });
      expect(await entriesOf(old.byTags(["version:1"]))).toEqual({ tea: { madeBy: 1, events: index + 2 } });
      expect(await entriesOf(old.byTags(["version:2"]))).toEqual({});
      expect(await entriesOf(next.all())).toEqual({ tea: { madeBy: 2, events: index + 2 } });
    }
    // A roll-back by one version finds its documents, and catches up.
    await oldRun.stop();
    const { last } = await newStore.append(stocked("tea", 1));
    const back = await openProjection(oldStore, shelvesOf(1));
    await using _back = back.run();
    await back.waitUntilProcessed(last);
    expect(await back.get("tea")).toEqual({ madeBy: 1, events: 5 });
    await nextRun.stop();
  });

  test("a rebuild of the new version keeps the documents of the old one", async () => {
    const world = await LogWorld.make(kind);
    const store = await world.open<ShopEvent>();
    await store.append(stocked("tea", 1));
    const [old, next] = [await openProjection(store, shelvesOf(1)), await openProjection(store, shelvesOf(2))];
    await using _run = old.run();
    await old.waitUntilProcessed(1);
    await next.rebuild();
    await next.rebuild();
    await store.append(stocked("tea", 1));
    await old.waitUntilProcessed(2);
    expect(await old.get("tea")).toEqual({ madeBy: 1, events: 2 });
    expect(await next.get("tea")).toEqual({ madeBy: 2, events: 1 });
  });

  test("programs that were rolled back keep their documents at the next upgrade", async () => {
    const world = await LogWorld.make(kind);
    const store = await world.open<ShopEvent>();
    await store.append(stocked("tea", 1));
    await using old = await openProjection(store, shelvesOf(1));
    const running = old.run();
    running.done.catch(() => undefined);
    await old.waitUntilProcessed(1);
    // Version 2 was bad, and all programs are of version 1 again when version 3 comes.
    for (const version of [2, 3]) await (await openProjection(store, shelvesOf(version))).rebuild();
    const { last } = await store.append(stocked("tea", 1));
    await old.waitUntilProcessed(last);
    expect(await old.get("tea")).toEqual({ madeBy: 1, events: 2 });
  });

  test("dropOlder removes the documents of older versions, and their programs are refused", async () => {
    const world = await LogWorld.make(kind);
    const store = await world.open<ShopEvent>();
    await store.append(stocked("tea", 1));
    const [old, next] = [await openProjection(store, shelvesOf(1)), await openProjection(store, shelvesOf(2))];
    const running = old.run();
    await old.waitUntilProcessed(1);
    // The documents of version 1 are the current ones until those of version 2 are complete.
    await next.dropOlder();
    expect(await old.get("tea")).toEqual({ madeBy: 1, events: 1 });
    await next.rebuild();
    await old.dropOlder();
    expect(await old.get("tea")).toEqual({ madeBy: 1, events: 1 });
    await next.dropOlder();
    await next.dropOlder();
    await expect(old.get("tea")).rejects.toMatchObject({ code: "NEWER_FORMAT" });
    await store.append(stocked("tea", 1));
    await expect(running.done).rejects.toMatchObject({ code: "NEWER_FORMAT" });
    expect(await next.get("tea")).toEqual({ madeBy: 2, events: 1 });
    const { disk } = await world.ports();
    await next.rebuild();
    expect((await disk.list(`${world.directory}/projections/shelves`)).sort()).toEqual(["0000000003", "catalog"]);
  });

  test("a program that is three versions behind is refused with NEWER_FORMAT, and gets no document", async () => {
    const world = await LogWorld.make(kind);
    const store = await world.open<ShopEvent>();
    await store.append(stocked("tea", 1));
    const old = await openProjection(store, shelvesOf(1));
    const running = old.run();
    await old.waitUntilProcessed(1);
    for (const version of [2, 3, 4]) await (await openProjection(store, shelvesOf(version))).rebuild();
    // The run meets the removal with the next event.
    const { last } = await store.append(stocked("tea", 1));
    await expect(running.done).rejects.toMatchObject({ code: "NEWER_FORMAT" });
    const late = await openProjection(store, shelvesOf(1));
    for (const call of [
      () => late.get("tea"),
      () => late.position(),
      () => entriesOf(late.all()),
      () => late.waitUntilProcessed(last),
      () => late.rebuild(),
      () => late.run().done,
    ])
      await expect(call()).rejects.toMatchObject({ code: "NEWER_FORMAT" });
    expect(await (await openProjection(store, shelvesOf(2))).get("tea")).toEqual({ madeBy: 2, events: 1 });
    const { disk } = await world.ports();
    expect((await disk.list(`${world.directory}/projections/shelves`)).sort()).toEqual([
      "0000000002",
      "0000000003",
      "0000000004",
      "catalog",
    ]);
  });

  test("with readsFrom a program reads documents of an older version until its own are complete", async () => {
    const world = await LogWorld.make(kind);
    const store = await world.open<ShopEvent>();
    await store.append(stocked("tea", 1));
    await (await openProjection(store, shelvesOf(1))).rebuild();
    const next = await openProjection(store, shelvesOf(2, 1));
    expect(await next.get("tea")).toEqual({ madeBy: 1, events: 1 });
    expect(await next.position()).toBe(1);
    await next.rebuild();
    expect(await next.get("tea")).toEqual({ madeBy: 2, events: 1 });
    await expect((await openProjection(store, shelvesOf(4, 3))).get("tea")).rejects.toMatchObject({
      code: "RESOURCE_BUSY",
    });
    for (const readsFrom of [0, 3, 1.5])
      await expect(openProjection(store, shelvesOf(2, readsFrom))).rejects.toThrow(RangeError);
  });
});

test("a run builds the documents after a first rebuild that was given up", async () => {
  // Such a run once asked the catalog again and again, and never began.
  const world = await LogWorld.make();
  const store = await world.open<ShopEvent>();
  await store.append(stocked("tea", 1));
  const { generations } = await ProjectionFiles.open(accessOf(store), "shelves");
  await generations.nameBuilding(1, undefined);
  await generations.abandon(1);
  const projection = await openProjection(store, shelvesOf(1));
  await using _run = projection.run();
  await projection.waitUntilProcessed(1);
  expect(await projection.get("tea")).toEqual({ madeBy: 1, events: 1 });
});
