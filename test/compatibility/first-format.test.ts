// What the first release of each format wrote still opens and works. The files were written by that
// code, and are never written anew.
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { openEvents, openProjection, verifyEvents, type NewEvent } from "../../src/events/index.ts";
import { openPathLocks } from "../../src/locks/index.ts";
import { makeScratch } from "../sites/scratch.ts";
import { layOut } from "./earlier-builds.ts";

type Moved = NewEvent<"Sold" | "Returned", { readonly sku: string; readonly pieces: number }>;

let root: string;

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

beforeEach(() => void (root = makeScratch()));

describe.each(["log-local", "log-share"])("the %s of the first format", (name) => {
  beforeEach(() => layOut(root, "first-format.json"));

  it("gives back its events, and takes new ones after them", async () => {
    await using log = await openEvents<Moved>(join(root, name), { create: false });
    const read = await all(log.read());
    expect(read.map(({ position, id, data }) => [position, id, data.pieces])).toEqual(
      [1, 2, 3, 4, 5, 6, 7].map((n) => [n, `event-${n}`, n]),
    );
    const found = await all(log.read({ types: ["Sold"], tags: ["sku:sku-1"] }));
    expect(found.map(({ position }) => position)).toEqual([1, 7]);
    const again = await log.append({
      type: "Sold",
      data: { sku: "sku-1", pieces: 7 },
      tags: ["sku:sku-1"],
      id: "event-7",
    });
    expect(again).toMatchObject({ first: 7, repeated: true });
    expect(await log.append({ type: "Sold", data: { sku: "sku-2", pieces: 8 } })).toMatchObject({ first: 8 });
  });

  it("has a consumer that goes on from its checkpoint", async () => {
    await using log = await openEvents<Moved>(join(root, name));
    const seen: number[] = [];
    const billing = log.consume("billing", {}, async (events) => {
      seen.push(...events.map(({ position }) => position));
    });
    await billing.waitUntilProcessed(7);
    await billing.stop();
    expect(seen).toEqual([7]);
  });

  it("has a read model that goes on from its documents", async () => {
    await using log = await openEvents<Moved>(join(root, name));
    const stock = await openProjection(log, {
      name: "stock",
      query: { types: ["Sold", "Returned"] },
      key: ({ data }) => data.sku,
      apply: (state: { readonly pieces: number } = { pieces: 0 }, { type, data }) => ({
        pieces: state.pieces + (type === "Sold" ? -data.pieces : data.pieces),
      }),
    });
    expect(await stock.get("sku-1")).toEqual({ pieces: 3 });
    const running = stock.run();
    await stock.waitUntilProcessed(7);
    await running.stop();
    expect(await stock.get("sku-1")).toEqual({ pieces: -4 });
  });

  it("is found whole by verify", async () => {
    expect(await verifyEvents(join(root, name))).toMatchObject({ ok: true });
  });
});

it("a lock table of the first format grants locks, with fences after the last one", async () => {
  await layOut(root, "first-format.json");
  await using locks = await openPathLocks(join(root, "locks"));
  await using hold = await locks.acquire("a/b");
  expect(hold.fence).toBeGreaterThan(131_072);
  expect(await locks.tryAcquire("a/b")).toBe(undefined);
  expect(await locks.list()).toMatchObject([{ path: "a/b" }]);
});

it("a redo that an earlier build has committed, and died before its first step, is completed", async () => {
  await layOut(root, "pending-redo.json");
  await using locks = await openPathLocks(root);
  expect(await locks.list()).toEqual([]);
  const texts: Record<string, string> = {};
  for (const path of await readdir(root, { recursive: true }))
    if (!path.startsWith(".holdfast") && (await stat(join(root, path))).isFile())
      texts[path] = await readFile(join(root, path), "utf8");
  expect(texts).toEqual({ "count.txt": "2", "brought/new": "inside", "target/a.txt": "moved" });
  expect(await readdir(join(root, ".holdfast/redo"))).toEqual([]);
});
