// A store that release 0.1.0 wrote, whose process was killed: every part continues, before an upgrade and after it.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { openProjection, type NewEvent } from "../../src/events/index.ts";
import type { TicketState } from "../../src/handoff/index.ts";
import { openStore, upgradeStore, verifyStore, type Store } from "../../src/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { layOut } from "./earlier-builds.ts";

type Moved = NewEvent<"Sold" | "Returned", { readonly sku: string; readonly pieces: number }>;

let root: string;

beforeEach(async () => {
  root = makeScratch();
  await layOut(root, "release-0.1.json");
});

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

async function keysOf(store: Store, state: TicketState): Promise<string[]> {
  const box = await store.handoff("invoices");
  return (await all(box.list(state))).map(({ key }) => key).sort();
}

describe.each([
  { when: "as it is", upgrade: false },
  { when: "after an upgrade", upgrade: true },
])("a store of release 0.1.0, $when,", ({ upgrade }) => {
  beforeEach(async () => {
    if (upgrade)
      expect((await upgradeStore(root)).every(({ state }) => state === "current" || state === "older")).toBe(true);
  });

  it("returns its events, and its consumer and read model continue", async () => {
    await using store = await openStore(root, { create: false });
    const log = await store.events<Moved>();
    expect((await all(log.read())).map(({ id }) => id)).toEqual([1, 2, 3, 4, 5, 6].map((n) => `sale-${n}`));
    const again = { type: "Returned", id: "sale-6", tags: ["sku:rug"], data: { sku: "rug", pieces: 6 } } as const;
    expect(await log.append(again)).toMatchObject({ first: 6, repeated: true });
    const seen: number[] = [];
    const billing = log.consume(
      "billing",
      {},
      async (events) => void seen.push(...events.map(({ position }) => position)),
    );
    await billing.waitUntilProcessed(6);
    await billing.stop();
    expect(seen).toEqual([6]);
    const stock = await openProjection(log, {
      name: "stock",
      query: { types: ["Sold", "Returned"] },
      key: ({ data }) => data.sku,
      apply: (state: { readonly pieces: number } = { pieces: 0 }, { type, data }) => ({
        pieces: state.pieces + (type === "Sold" ? -data.pieces : data.pieces),
      }),
    });
    expect(await stock.get("rug")).toEqual({ pieces: -6 });
    const running = stock.run();
    await stock.waitUntilProcessed(6);
    await running.stop();
    expect(await stock.get("rug")).toEqual({ pieces: 0 });
  });

  it("delivers its tickets, knows its keys, and returns the claim of the dead process", async () => {
    await using store = await openStore(root, { create: false });
    const box = await store.handoff("invoices");
    expect(await keysOf(store, "delayed")).toEqual(["late"]);
    expect(await keysOf(store, "error")).toEqual(["bad"]);
    for (const key of ["done", "bad", "late", "waiting", "group-1"])
      expect(await box.publish({ "again.txt": "" }, { key })).toMatchObject({ duplicate: true });
    expect((await box.findByKey("done"))?.result).toEqual({ result: { booking: 1 } });
    const worked: string[] = [];
    const worker = box.consume(async ({ key }) => void worked.push(key));
    await Promise.all(
      ["claimed", "waiting", "streamed", "group-1", "group-2"].map(async (key) => {
        const ticket = await box.findByKey(key);
        expect(await box.waitFor(ticket?.id ?? "")).toMatchObject({ state: "archive" });
      }),
    );
    await worker.stop();
    expect(worked.sort()).toEqual(["claimed", "group-1", "group-2", "streamed", "waiting"]);
  });

  it("returns every version of its objects, and adds to them", async () => {
    await using store = await openStore(root, { create: false });
    const objects = await store.objects();
    const photos = await objects.bucket("photos");
    const texts = await Promise.all(
      (await all(photos.versions({ key: "cats/tom.txt" }))).map(async ({ versionId }) => {
        await using version = await photos.get("cats/tom.txt", { versionId });
        return await version.text();
      }),
    );
    expect(texts).toEqual(["three", "two", "one"]);
    expect((await all(photos.versions({ key: "dogs/rex.txt" }))).map(({ deleteMarker }) => deleteMarker)).toEqual([
      true,
      false,
    ]);
    await photos.put("cats/tom.txt", "four");
    expect(await all(photos.versions({ key: "cats/tom.txt" }))).toHaveLength(4);
    const plain = await objects.bucket("plain");
    await using x = await plain.get("x");
    expect(await x.text()).toBe("new");
  });

  it("returns its files and the changes of them, finds them by search, and writes on", async () => {
    await using store = await openStore(root, { create: false });
    const files = await store.files();
    await files.write("notes/new.md", "# New\n\nThe bear is painted.\n");
    await files.settled();
    expect((await files.search("bear")).map(({ path }) => path).sort()).toEqual(["notes/new.md", "notes/plan.md"]);
    expect((await files.search("draft")).map(({ path }) => path)).toEqual(["notes/moved.md"]);
    expect((await files.history()).map(({ path }) => path)).toContain("notes/moved.md");
    expect(await readFile(join(root, "files/notes/plan.md"), "utf8")).toBe("# Plan\n\nThe bear buys paint.\n");
  });

  it("grants the lock of the dead process, with a higher fence", async () => {
    await using store = await openStore(root, { create: false });
    const locks = await store.locks();
    await using hold = await locks.acquire("held/by-a-dead-process");
    expect(hold.fence).toBeGreaterThan(0);
  });

  it("is found whole by verify", async () => {
    expect(await verifyStore(root)).toMatchObject({ ok: true });
  });
});
