// A store: one directory, one ground and one holder for all parts, which are opened on first use
// and shared.
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { openEvents, openSubjectKeys } from "../../src/events/index.ts";
import { openHandoff } from "../../src/handoff/index.ts";
import { openStore, type Store, type StoreOptions } from "../../src/index.ts";
import { listPathLocks, openPathLocks, openStoreLock } from "../../src/locks/index.ts";
import { openObjects } from "../../src/objects/index.ts";
import { createStore } from "../../src/store.ts";
import { asNewerFormat } from "../durable/newer-format.ts";
import { refusingPorts } from "../durable/refusing-ports.ts";
import { local, nfs, World } from "../sites/world.ts";
import { letTimePass } from "../sites/sites.ts";
import { makeScratch } from "../sites/scratch.ts";
import { until } from "../waiting.ts";

const sold = { type: "Sold", data: 1 };

async function open(location: string = makeScratch(), options?: StoreOptions): Promise<Store> {
  const store = await openStore(location, options);
  onTestFinished(() => store.close());
  return store;
}

function bodyOf(...path: string[]): { id: string; ground?: string } {
  return (JSON.parse(readFileSync(join(...path), "utf8")) as { body: { id: string; ground?: string } }).body;
}

describe("the parts of a store", () => {
  test("are opened once for equal arguments, also by calls at the same time", async () => {
    const store = await open();
    const [first, second] = await Promise.all([store.events(), store.events("main", { schemas: undefined })]);
    expect(second).toBe(first);
    expect(await store.events()).toBe(first);
    expect(await store.events("main", { lockTimeoutMs: 1 })).not.toBe(first);
    expect(await store.events("other")).not.toBe(first);
    const [one, two] = await Promise.all([store.locks(), store.locks({})]);
    expect(two).toBe(one);
    expect(await store.locks({ timeoutMs: 1 })).not.toBe(one);
  });

  test("have one holder and one heartbeat between them", async () => {
    const directory = makeScratch();
    const store = await open(directory, { name: "till 3" });
    const events = await store.events();
    await events.append(sold);
    await using consumer = events.consume("stock", "all", async () => undefined);
    await consumer.waitUntilProcessed(1);
    await using _ = await (await store.locks()).acquire("a");
    expect(await store.holders()).toMatchObject([{ name: "till 3", pid: process.pid, state: "alive" }]);
    expect(readdirSync(join(directory, "ground", "holders")).filter((name) => name.endsWith(".beat"))).toHaveLength(1);
    expect(existsSync(join(directory, "events", "main", ".holdfast"))).toBe(false);
  });

  test("are opened anew when a caller has closed them, and tried again when they could not be opened", async () => {
    const directory = makeScratch();
    const store = await open(directory);
    const events = await store.events();
    await events.append(sold);
    await events.close();
    await expect(events.head()).rejects.toMatchObject({ code: "CLOSED" });
    expect(await (await store.events()).head()).toBe(1);
    await (await store.locks()).close();
    await using _ = await (await store.locks()).acquire("a");
    await expect(store.events("late", { create: false })).rejects.toMatchObject({ code: "NOT_A_STORE" });
    await (await store.events("late")).close();
    expect(await (await store.events("late", { create: false })).head()).toBe(0);
  });

  test("are drained by close, which ends every hold and every loop", async () => {
    const directory = makeScratch();
    const store = await openStore(directory);
    const events = await store.events();
    let finish = (): void => undefined;
    const finished = new Promise<void>((resolve) => (finish = resolve));
    let hasBegun = false;
    let hasEnded = false;
    const consumer = events.consume("slow", "all", async () => {
      hasBegun = true;
      await finished;
      hasEnded = true;
    });
    const appended = events.append([sold, sold]);
    await until(() => hasBegun);
    const hold = await (await store.locks()).acquire("a");
    const closing = store.close();
    expect(hold.signal.aborted || hasEnded).toBe(false);
    finish();
    await Promise.all([closing, store.close(), consumer.done]);
    expect({ hasEnded, held: !hold.signal.aborted, ...(await appended) }).toMatchObject({
      hasEnded: true,
      held: false,
      last: 2,
    });
    for (const call of [store.events(), store.locks(), store.holders(), events.head()])
      await expect(call).rejects.toMatchObject({ code: "CLOSED" });
    expect(readdirSync(join(directory, "ground", "holders"))).toEqual([]);
  });

  test("closed by a caller keep the ground until they have ended", async () => {
    const store = await openStore(makeScratch());
    const events = await store.events();
    const appended = events.append(sold);
    const closing = events.close();
    await store.close();
    await closing;
    expect(await appended).toMatchObject({ last: 1 });
  });
});

describe("a part of a store that is opened alone", () => {
  test("has the holders of the store, whichever of the two made it", async () => {
    const directory = makeScratch();
    const store = await open(directory);
    await using made = await openEvents(join(directory, "events", "alone"));
    expect(bodyOf(directory, "events", "alone", "log.json").ground).toBe("../../ground");
    expect(await store.holders()).toHaveLength(2);
    await made.append(sold);
    expect(await (await store.events("alone")).head()).toBe(1);
    await (await store.events()).append(sold);
    await using found = await openEvents(join(directory, "events", "main"));
    expect(await found.head()).toBe(1);
    expect(await store.holders()).toHaveLength(3);
  });

  test("shares the leases of its consumers, by whatever path it was reached", async () => {
    const directory = makeScratch();
    const store = await open(directory);
    const events = await store.events();
    await events.append(sold);
    await using first = events.consume("stock", "all", async () => undefined);
    await first.waitUntilProcessed(1);
    const link = join(makeScratch(), "link");
    symlinkSync(join(directory, "events"), link);
    await using other = await openEvents(join(link, "main"));
    let seen = 0;
    await using second = other.consume("stock", "all", async (list) => void (seen += list.length));
    await events.append(sold);
    await first.waitUntilProcessed(2);
    expect(seen).toBe(0);
    await first.stop();
    await events.append(sold);
    await second.waitUntilProcessed(3);
    expect(seen).toBe(1);
  });

  test("is refused where its store is gone, and nothing is made; in another store it works", async () => {
    const directory = makeScratch();
    await using store = await openStore(directory);
    await (await store.events()).append(sold);
    await store.close();
    const elsewhere = makeScratch();
    const copy = join(elsewhere, "a", "b", "log");
    cpSync(join(directory, "events", "main"), copy, { recursive: true });
    await expect(openEvents(copy)).rejects.toMatchObject({
      code: "NOT_A_STORE",
      message: expect.stringMatching(/part of a store.*\/a\/ground does not exist.*openStore/) as string,
    });
    expect(readdirSync(join(elsewhere, "a"))).toEqual(["b"]);
    const other = await open();
    mkdirSync(join(other.location, "events"));
    renameSync(copy, join(other.location, "events", "copied"));
    expect(await (await other.events("copied")).append(sold)).toMatchObject({ last: 2 });
  });

  test("that was made with a ground of its own keeps it, also in a store", async () => {
    const store = await open();
    const directory = join(makeScratch(), "old");
    await using old = await openEvents(directory);
    await old.append(sold);
    await old.close();
    mkdirSync(join(store.location, "events"));
    renameSync(directory, join(store.location, "events", "old"));
    const events = await store.events("old");
    await using alone = await openEvents(join(store.location, "events", "old"));
    await alone.append(sold);
    expect(await events.head()).toBe(2);
    expect(await store.holders()).toHaveLength(1);
    expect(readdirSync(join(store.location, "events", "old", ".holdfast", "holders")).length).toBeGreaterThan(0);
  });
});

describe("the path locks of a store", () => {
  test("are on the paths below files/, and the same by every way to them", async () => {
    const store = await open();
    const hold = await (await store.locks()).acquire("a/b", { tag: "report" });
    for (const path of [store.location, join(store.location, "files")]) {
      await using locks = await openPathLocks(path);
      expect(locks.root).toBe(join(store.location, "files"));
      expect(await locks.tryAcquire("a", { mode: "tree" })).toBe(undefined);
      expect(await listPathLocks(path)).toMatchObject([{ path: "a/b", tag: "report", fence: hold.fence }]);
    }
    expect(existsSync(join(store.location, ".holdfast"))).toBe(false);
  });

  test("on the whole tree do not stop consumers and appends", async () => {
    const store = await open();
    await using _ = await (await store.locks()).acquire("", { mode: "tree" });
    const events = await store.events();
    await using consumer = events.consume("stock", "all", async () => undefined);
    await events.append(sold);
    await consumer.waitUntilProcessed(1);
  });

  test("tell a waiter the name of the process that holds the lock", async () => {
    const store = await open(makeScratch(), { name: "till 3" });
    const locks = await store.locks();
    await using _ = await locks.acquire("a");
    await expect(locks.acquire("a")).rejects.toThrow(/\(till 3\)/);
  });
});

describe("openStore", () => {
  test("takes a path, a file: URL and memory:, which is a new store each time", async () => {
    const directory = makeScratch();
    const { id } = await open(directory);
    const byUrl = await openStore(new URL(`file://${directory}`), { create: false, id });
    expect(byUrl).toMatchObject({ location: directory, id });
    await byUrl.close();
    const [one, other] = [await open("memory:"), await open("memory:")];
    expect(one).toMatchObject({ location: "memory:", capabilities: { network: false, warnings: [] } });
    expect(one.id).not.toBe(other.id);
    await (await one.events()).append(sold);
    expect(await (await other.events()).head()).toBe(0);
    await using _ = await (await one.locks()).acquire("a");
  });

  test("is not needed for memory: every part alone opens in memory, each time a new one", async () => {
    await using locks = await openPathLocks("memory:");
    await using others = await openPathLocks("memory:");
    const hold = await locks.acquire("a", { timeoutMs: 0 });
    await (await others.acquire("a", { timeoutMs: 0 })).release();
    await expect(locks.acquire("a", { timeoutMs: 0 })).rejects.toMatchObject({ code: "LOCK_TIMEOUT" });
    await hold.release();
    await using writer = await openStoreLock("memory:");
    await (await writer.acquire()).release();
    await using objects = await openObjects("memory:");
    await objects.createBucket("photos");
    await (await objects.bucket("photos")).put("a", "1");
    await using other = await openObjects("memory:");
    await expect(other.bucket("photos")).rejects.toMatchObject({ code: "NO_SUCH_BUCKET" });
    const keys = await openSubjectKeys("memory:");
    expect(await keys.create("ada")).toHaveLength(32);
    await using box = await openHandoff(new URL("memory:"));
    expect(await box.publish({ a: "1" })).toMatchObject({ duplicate: false });
  });

  test("refuses a directory that is a part of its own, and a part refuses a store", async () => {
    const [log, locks, tree, writer] = [makeScratch(), makeScratch(), makeScratch(), makeScratch()];
    await (await openEvents(log)).close();
    await (await openPathLocks(locks)).close();
    await (await openPathLocks(join(tree, "files"))).close();
    for (const directory of [log, locks, tree]) {
      const before = readdirSync(directory);
      await expect(openStore(directory)).rejects.toMatchObject({ code: "INVALID_PATH", path: directory });
      expect(readdirSync(directory)).toEqual(before);
    }
    await (await openStoreLock(writer)).close();
    await open(writer);
    await expect(openEvents(writer)).rejects.toMatchObject({ code: "INVALID_PATH", path: writer });
  });

  test("finds the id again when the record is gone, and makes a ground that is gone anew", async () => {
    const directory = makeScratch();
    const { id } = await open(directory);
    rmSync(join(directory, "holdfast.json"));
    expect(await open(directory)).toMatchObject({ id });
    const before = await openStore(directory);
    await (await before.events()).append(sold);
    await before.close();
    rmSync(join(directory, "ground"), { recursive: true });
    await using alone = await openEvents(join(directory, "events", "main"));
    const store = await open(directory, { create: false, id });
    expect(await (await store.events()).append(sold)).toMatchObject({ last: 2 });
    expect(await store.holders()).toHaveLength(2);
    expect(await alone.head()).toBe(2);
  });

  test("refuses a damaged record and one of a newer format", async () => {
    const store = await open();
    const path = join(store.location, "holdfast.json");
    const record = readFileSync(path);
    writeFileSync(path, asNewerFormat(record));
    await expect(openStore(store.location)).rejects.toMatchObject({ code: "NEWER_FORMAT", writtenBy: "9.9.9" });
    writeFileSync(path, record.subarray(0, 20));
    await expect(openStore(store.location)).rejects.toMatchObject({ code: "CORRUPT", path });
    writeFileSync(path, record);
  });

  test("names what is wrong with an option", async () => {
    const wrong: readonly (readonly [object, RegExp])[] = [
      [{ leaseMS: 1 }, /openStore: there is no option "leaseMS"/],
      [{ leaseMs: 0 }, /leaseMs/],
      [{ lockTimeoutMs: Number.NaN }, /timeoutMs/],
      [{ durability: "maybe" }, /durability is "fsync" or "none"/],
      [{ name: 3 }, /name must be a string/],
      [{ name: "x".repeat(201) }, /at most 200/],
      [{ create: 1 }, /create/],
    ];
    const directory = makeScratch();
    for (const [options, message] of wrong) await expect(openStore(directory, options)).rejects.toThrow(message);
    expect(readdirSync(directory)).toEqual([]);
    const store = await open(directory);
    await expect(store.events("main", { leaseMs: 5 } as object)).rejects.toThrow(
      /events: there is no option "leaseMs"/,
    );
    await expect(store.locks({ leaseMs: 5 } as object)).rejects.toThrow(/locks: there is no option "leaseMs"/);
    await expect(store.events("")).rejects.toMatchObject({ code: "INVALID_NAME" });
  });

  test("gives its patience and its durability to the parts, unless they are told otherwise", async () => {
    const store = await open(makeScratch(), { lockTimeoutMs: 20, durability: "none" });
    const events = await store.events();
    await events.append(sold);
    await using lock = await openStoreLock(join(store.location, "events", "main"));
    await using _ = await lock.acquire();
    await expect(events.append(sold)).rejects.toMatchObject({ code: "LOCK_TIMEOUT", waitedMs: 20 });
  });
});

describe.each([
  ["a local disk", local],
  ["a share", nfs],
] as const)("on %s, a store", (_where, volume) => {
  test("has one holder for each process, also for the turn to write", async () => {
    const world = new World({ volume });
    letTimePass(world);
    const [ada, bob] = [
      await createStore(world.ports("ada", "one"), "/shop"),
      await createStore(world.ports("bob", "two"), "/shop"),
    ];
    expect(bob.id).toBe(ada.id);
    expect(ada.capabilities.network).toBe(volume === nfs);
    if (volume === local) return;
    for (const store of [ada, bob]) await (await store.events()).append(sold);
    expect(await (await ada.events()).head()).toBe(2);
    expect(await ada.holders()).toHaveLength(2);
    for (const store of [ada, bob]) await store.close();
    const { disk } = world.ports("audit");
    await expect(disk.list("/shop/events/main/.holdfast")).rejects.toMatchObject({ errno: "ENOENT" });
  });

  test.each(["EROFS", "EACCES", "ENOSPC"] as const)("opens for reading where a change fails with %s", async (errno) => {
    const world = new World({ volume });
    letTimePass(world);
    const writer = await createStore(world.ports("writer", "one"), "/shop");
    await (await writer.events()).append(sold);
    await using _ = await (await writer.locks()).acquire("a");
    const ports = refusingPorts(world.ports("reader", volume === nfs ? "two" : "one"), errno);
    const reader = await createStore(ports, "/shop");
    expect(reader.capabilities.warnings[0]).toMatch(/Nothing can be written/);
    const events = await reader.events();
    expect(await events.head()).toBe(1);
    expect(await (await reader.locks()).list()).toMatchObject([{ path: "a" }]);
    const code = errno === "ENOSPC" ? "DISK_FULL" : "NO_PERMISSION";
    await expect((await reader.locks()).acquire("b")).rejects.toMatchObject({ code });
    // On a full local disk there is still the room that was made behind the last line.
    const isFull = errno === "ENOSPC" && volume === local;
    if (!isFull) await expect(events.append(sold)).rejects.toMatchObject({ code });
    await expect(createStore(ports, "/elsewhere")).rejects.toMatchObject({ code });
    ports.allow();
    expect(await events.append(sold)).toMatchObject({ last: 2 });
    await reader.close();
    await writer.close();
  });
});

describe("a second lock table or log inside a store is refused", () => {
  test("path locks below its tree, because the locks of the store reach there", async () => {
    const directory = makeScratch();
    const store = await open(directory);
    await using _ = await (await store.locks()).acquire("sub", { mode: "tree" });
    mkdirSync(join(directory, "files", "sub"), { recursive: true });
    await expect(openPathLocks(join(directory, "files", "sub"))).rejects.toMatchObject({ code: "INVALID_PATH" });
    expect(existsSync(join(directory, "files", "sub", ".holdfast"))).toBe(false);
  });

  test("a tree that is a symbolic link, by whose target the store would not be found", async () => {
    const [directory, elsewhere] = [makeScratch(), makeScratch()];
    symlinkSync(elsewhere, join(directory, "files"));
    const store = await open(directory);
    await expect(store.locks()).rejects.toMatchObject({ code: "INVALID_PATH" });
    await expect(openPathLocks(directory)).rejects.toMatchObject({ code: "INVALID_PATH" });
  });

  test("a log in one of its own folders, and a store in the store", async () => {
    const directory = makeScratch();
    await (await open(directory)).events();
    for (const folder of ["events", "ground", "files"])
      await expect(openEvents(join(directory, folder))).rejects.toMatchObject({ code: "INVALID_PATH" });
    await expect(openStore(join(directory, "files"))).rejects.toMatchObject({ code: "INVALID_PATH" });
  });
});

test("no part of a store of a newer format is opened alone", async () => {
  const directory = makeScratch();
  const store = await openStore(directory);
  await (await store.events()).append(sold);
  await store.close();
  const record = join(directory, "holdfast.json");
  writeFileSync(record, asNewerFormat(readFileSync(record)));
  await expect(openEvents(join(directory, "events", "main"))).rejects.toMatchObject({ code: "NEWER_FORMAT" });
  await expect(openPathLocks(directory)).rejects.toMatchObject({ code: "NEWER_FORMAT" });
});

test("a store that has lost its record keeps its locks, and gets the record back", async () => {
  const directory = makeScratch();
  const store = await open(directory);
  await using _ = await (await store.locks()).acquire("p");
  rmSync(join(directory, "holdfast.json"));
  await using alone = await openPathLocks(join(directory, "files"));
  expect(await alone.tryAcquire("p")).toBe(undefined);
  expect((await open(directory)).id).toBe(store.id);
});
