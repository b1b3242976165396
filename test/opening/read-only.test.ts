// A store that is opened with readOnly leaves no trace: what a console and a dashboard need.
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listReadModels, openProjection, readDocuments } from "../../src/events/index.ts";
import { openStore, type Store } from "../../src/index.ts";
import { makeScratch } from "../sites/scratch.ts";

let directory: string;
let writer: Store;
let reader: Store;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "holdfast-read-only-"));
  writer = await openStore(directory, { name: "writer" });
  const events = await writer.events("main");
  await events.append([
    { type: "Sold", data: { sku: "A1" }, tags: ["sku:A1"] },
    { type: "Sold", data: { sku: "B2" }, tags: ["sku:B2"] },
  ]);
  const sold = await openProjection(events, {
    name: "sold",
    query: { types: ["Sold"] },
    key: () => "all",
    apply: (count: number | undefined) => (count ?? 0) + 1,
  });
  await sold.rebuild();
  const box = await writer.handoff("labels");
  await box.publish({ "label.txt": "A1" }, { key: "a" });
  await using delivery = await box.take();
  await delivery?.fail("no paper");
  await box.publish({ "label.txt": "B2" }, { key: "b" });
  const objects = await writer.objects();
  const bucket = await objects.createBucket("photos");
  await bucket.setVersioning("enabled");
  await bucket.put("cats/tom.jpg", "one");
  await bucket.put("cats/tom.jpg", "two");
  const files = await writer.files();
  await files.write("notes/today.md", "Count the shelves.");
  await (await files.session("till/3")).append({ role: "user", content: "Hello" });
  await files.settled();
  // Ends its background work, which goes on writing.
  await files.close();
  reader = await openStore(directory, { readOnly: true });
});

afterAll(async () => {
  await reader.close();
  await writer.close();
  rmSync(directory, { recursive: true, force: true });
});

/** Every entry below the store with size and time of change; heartbeats of the writer go on. */
function traces(): string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .filter((path) => !path.includes("beat"))
    .map((path) => `${path} ${statSync(join(directory, path)).ctimeMs}`)
    .sort();
}

async function listOf<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

test("a store that is opened with readOnly shows every part and changes nothing", async () => {
  await using hold = await (await writer.locks()).acquire("notes", { mode: "tree", tag: "stock-take" });
  const before = traces();
  const held = await (await reader.locks()).list();
  const ofUsers = held.filter(({ path }) => !path.startsWith("/"));
  expect(ofUsers).toMatchObject([{ path: "notes", tag: "stock-take", holder: { name: "writer", state: "alive" } }]);
  const events = await reader.events("main", { create: false });
  expect(await events.head()).toBe(2);
  expect(await listOf(events.read({ tags: ["sku:B2"] }, { backwards: true }))).toMatchObject([{ position: 2 }]);
  expect(await events.consumers()).toEqual([]);
  expect(await events.bytes()).toBeGreaterThan(100);
  expect(await listReadModels(events)).toEqual([{ name: "sold", version: 1, position: 2, lag: 0 }]);
  expect(await listOf(readDocuments(events, "sold"))).toMatchObject([{ key: "all", state: 2 }]);
  const box = await reader.handoff("labels", { create: false });
  expect(await box.stats()).toMatchObject({ incoming: 1, error: 1 });
  expect(await listOf(box.list("error"))).toMatchObject([{ key: "a", history: [{ reason: "no paper" }] }]);
  const bucket = await (await reader.objects({ create: false })).bucket("photos");
  expect((await bucket.listVersions({ prefix: "cats/" })).versions).toHaveLength(2);
  expect(await (await bucket.get("cats/tom.jpg")).text()).toBe("two");
  const files = await reader.files();
  expect(await listOf(files.list("", { deep: true }))).toHaveLength(2);
  expect(await files.readText("notes/today.md")).toBe("Count the shelves.");
  expect(await files.search("shelves")).toMatchObject([{ path: "notes/today.md" }]);
  expect(await files.lastChange()).toBe(1);
  expect(await files.sessions()).toEqual(["till/3"]);
  expect(await files.givenUp()).toEqual([]);
  expect((await reader.holders()).map(({ name }) => name)).toEqual(["writer"]);
  expect(hold.signal.aborted).toBe(false);
  expect(traces()).toEqual(before);
});

test("a store that is opened with readOnly refuses every change with NO_PERMISSION", async () => {
  const box = await reader.handoff("labels");
  const files = await reader.files();
  const bucket = await (await reader.objects()).bucket("photos");
  const before = traces();
  const refused = { code: "NO_PERMISSION" };
  await expect((await reader.locks()).acquire("x")).rejects.toMatchObject(refused);
  await expect((await reader.events("main")).append({ type: "Sold", data: {} })).rejects.toMatchObject(refused);
  await expect(box.replay({ from: "error" })).rejects.toMatchObject(refused);
  await expect(box.pause()).rejects.toMatchObject(refused);
  await expect(files.write("x", "y")).rejects.toMatchObject(refused);
  await expect(bucket.put("x", "y")).rejects.toMatchObject(refused);
  expect(traces()).toEqual(before);
});

test("a log of a store in which nothing was ever locked has no consumers, and gets no lock table", async () => {
  const shop = makeScratch();
  await using other = await openStore(shop);
  await (await other.events("main")).append({ type: "Sold", data: {} });
  const before = readdirSync(shop, { recursive: true }).length;
  await using watcher = await openStore(shop, { readOnly: true });
  const events = await watcher.events("main");
  expect(await events.consumers()).toEqual([]);
  expect(await listReadModels(events)).toEqual([]);
  expect(readdirSync(shop, { recursive: true })).toHaveLength(before);
});

test("a store that does not exist is not created by opening it with readOnly", async () => {
  await expect(openStore(join(directory, "elsewhere"), { readOnly: true })).rejects.toMatchObject({
    code: "NOT_A_STORE",
  });
  expect(readdirSync(directory)).not.toContain("elsewhere");
});
