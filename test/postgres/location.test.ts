// Locations in PostgreSQL: what they name, what is shown of them, and what is loaded for them.
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { inspect } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import {
  exportEvents,
  importEvents,
  listEventLogs,
  locateEvents,
  openEvents,
  salvageEvents,
} from "../../src/events/index.ts";
import { listPathLocks, openPathLocks, openStoreLock } from "../../src/locks/index.ts";
import { openStore, upgradeStore } from "../../src/index.ts";
import { redacted } from "../../src/format/database-location.ts";
import { parseLocation } from "../../src/postgres/connection/location.ts";
import { openPostgres, upgradePostgres } from "../../src/postgres/index.ts";
import { LogWorld } from "../events/follow/log-world.ts";
import { listOf } from "../sites/event-logs.ts";
import { serverUrl } from "./stores.ts";

function locationOf(part = "", store: string = randomUUID()): string {
  return `${serverUrl()}?store=${store}${part}`;
}

it("a location names a store and a part of it, and the driver gets the rest", () => {
  expect(parseLocation("postgres://ada:secret@host:5433/db?store=shop&sslmode=require#events/main")).toEqual({
    url: "postgres://ada:secret@host:5433/db?sslmode=require",
    store: "shop",
    part: "events/main",
    shown: "postgres://ada:***@host:5433/db?store=shop&sslmode=require#events/main",
  });
  expect(parseLocation("postgresql://host/db").store).toBe("main");
  expect(() => parseLocation("postgres://host/db?store=")).toThrow(expect.objectContaining({ code: "INVALID_PATH" }));
});

it("a password is shown nowhere: in no message, no cause, and no property of an error", async () => {
  const secret = "s3cret";
  const places = [
    `postgres://ada:${secret}@127.0.0.1:1/db`,
    `postgres://ada:${secret}@[::bad/db`,
    `postgres://127.0.0.1:1/db?user=ada&password=${secret}`,
    serverUrl().replace("holdfast@", `nobody-known:${secret}@`),
  ];
  for (const place of places) {
    expect(redacted(place)).not.toContain(secret);
    const failure = await upgradePostgres(place).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Error);
    expect(inspect(failure, { depth: 10, showHidden: true })).not.toContain(secret);
  }
}, 120_000);

it("a program that opens no such location loads neither the engine nor the driver", () => {
  const program = `
    const { openStore } = await import("holdfast");
    const { memoryEvents } = await import("holdfast/events");
    const { openPathLocks } = await import("holdfast/locks");
    const events = memoryEvents();
    await events.append({ type: "A", data: 1 });
    await events.close();
    await (await openPathLocks("memory:")).close();
    await (await openStore("memory:")).close();
  `;
  const loader = `
    import { writeSync } from "node:fs";
    export async function load(url, context, next) {
      writeSync(1, url + "\\n");
      return await next(url, context);
    }
  `;
  const flags = ["--no-warnings", "--experimental-loader", `data:text/javascript,${encodeURIComponent(loader)}`];
  const loaded = execFileSync(process.execPath, [...flags, "--input-type=module", "-e", program], { encoding: "utf8" });
  expect(loaded).toContain("dist/events/index.js");
  expect(loaded).not.toMatch(/dist\/postgres\/|node_modules\/pg/);
});

it("logs are opened, listed and located by their location", async () => {
  const store = randomUUID();
  const place = locationOf("#events/orders", store);
  const events = await openEvents(place);
  onTestFinished(() => events.close());
  await events.append({ type: "Ordered", data: { sku: "a" } });
  expect(await listEventLogs(locationOf("", store))).toEqual([place]);
  expect(await locateEvents(locationOf("", store), { log: "orders" })).toMatchObject({
    isInStore: true,
    isThere: true,
  });
  await expect(openEvents(locationOf("#events/none", store), { create: false })).rejects.toMatchObject({
    code: "NOT_A_STORE",
  });
  await expect(listOf(salvageEvents(place, "all", { upTo: 1 }))).rejects.toMatchObject({ code: "UNSUPPORTED" });
  await expect(openEvents(place, { mode: "share" })).rejects.toMatchObject({ code: "UNSUPPORTED", what: "mode" });
});

it("path locks and the store lock are opened by their location", async () => {
  const place = locationOf();
  await using locks = await openPathLocks(place, { timeoutMs: 100 });
  await using _hold = await locks.acquire("a", { tag: "import" });
  expect(await listPathLocks(place)).toMatchObject([{ path: "a", tag: "import" }]);
  await expect(openPathLocks(place, { interop: true })).rejects.toMatchObject({ code: "UNSUPPORTED" });
  await using lock = await openStoreLock(place);
  await using other = await openStoreLock(place);
  await lock.withLock(async () => expect(await other.tryAcquire()).toBe(undefined));
  await other.withLock(async ({ signal }) => expect(signal.aborted).toBe(false));
});

it("an export of a folder is the export of its import, byte by byte, and back", async () => {
  const world = await LogWorld.make("disk");
  const folder = await world.open();
  await folder.append([
    {
      type: "A",
      data: { text: "NUL \0, half \ud800", n: -1.5e-7 },
      tags: ["t:1", "long".repeat(200)],
      metadata: { by: "x" },
    },
    { type: "B", data: null, id: "given" },
  ]);
  await folder.append({ type: "C", data: [] }, { condition: { failIfEventsMatch: { types: ["Z"] }, after: 1 } });
  await folder.addTags([1, 2], ["later"]);
  await folder.append({ type: "D", data: "x" });
  const place = locationOf();
  const text = async (chunks: AsyncIterable<string>): Promise<string> => (await listOf(chunks)).join("");
  const { directory } = world;
  const original = await text(exportEvents(directory));
  expect(await importEvents(place, [original] as never)).toEqual({ added: 4, position: 4 });
  expect(await importEvents(place, [original] as never)).toEqual({ added: 0, position: 4 });
  // The id of the log is in the first record, and seeds the checksums.
  const content = (export_: string): string[] =>
    export_
      .split("\n")
      .slice(1, -2)
      .map((line) => line.replace(/,"crc":"[0-9a-f]{8}"}$/, ""));
  const exported = await text(exportEvents(place));
  expect(content(exported)).toEqual(content(original));
  const events = await openEvents(place);
  onTestFinished(() => events.close());
  expect(await listOf(events.read())).toEqual(await listOf(folder.read()));
  expect(await events.verify()).toMatchObject({ ok: true });
  await events.append({ type: "E", data: 0 });
  await folder.append({ type: "F", data: 0 });
  await expect(importEvents(place, [await text(exportEvents(directory))] as never)).rejects.toMatchObject({
    code: "LOG_REWOUND",
    position: 5,
  });
});

it("a store has the id that is expected, or is refused", async () => {
  const place = locationOf();
  const { id } = await openPostgres(place).then(async (store) => {
    await store.close();
    return store;
  });
  await (await openPostgres(place, { id })).close();
  await expect(openPostgres(place, { id: "other" })).rejects.toMatchObject({ code: "WRONG_STORE", found: id });
  await expect(openPostgres(locationOf(), { id })).rejects.toMatchObject({ code: "NOT_A_STORE" });
});

it("openStore opens a store by its location, and refuses what only a folder supports", async () => {
  const place = locationOf();
  await using store = await openStore(place);
  const events = await store.events("main");
  expect(await events.append({ type: "Opened", data: {} })).toMatchObject({ first: 1 });
  await using _hold = await (await store.locks()).acquire("a");
  expect(await store.holders()).toHaveLength(1);
  await expect(store.files()).rejects.toMatchObject({ code: "UNSUPPORTED", what: "files" });
  await expect(openStore(place, { readOnly: true })).rejects.toMatchObject({ code: "UNSUPPORTED" });
  expect(await upgradeStore(place)).toMatchObject([{ part: "schema", state: "current", upgraded: false }]);
});
