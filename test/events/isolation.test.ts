// The mistakes and delays of one caller do not affect other callers.
import { closeSync, openSync } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { memoryEvents, openEvents, type EventStore } from "../../src/events/index.ts";
import { loadNativeLock, lockFileFlags } from "../../src/ports/node/lock/native-lock.ts";
import { makeScratch } from "../sites/scratch.ts";

function nested(depth: number): unknown {
  let data: unknown = 1;
  for (let level = 0; level < depth; level++) data = [data];
  return data;
}

async function settledCodes(calls: readonly Promise<unknown>[]): Promise<string[]> {
  const ends = await Promise.allSettled(calls);
  return ends.map((end) => (end.status === "fulfilled" ? "ok" : String((end.reason as { code?: string }).code)));
}

describe("an event that is nested too deep", () => {
  // The JSON of an event has one level more than its data.
  it.each([200, 1000, 5000, 100_000])("is refused at the call: %i levels", async (depth) => {
    const events = memoryEvents();
    for (const data of [nested(depth), { toJSON: () => nested(depth) }])
      await expect(events.append({ type: "Deep", data })).rejects.toMatchObject({ code: "EVENT_INVALID" });
    const metadata = { deep: nested(depth) };
    await expect(events.append({ type: "Deep", data: 1, metadata })).rejects.toMatchObject({ code: "EVENT_INVALID" });
    expect(await events.head()).toBe(0);
  });

  it("is accepted and repeated at the limit, whatever brackets and quotes its texts have", async () => {
    const events = memoryEvents();
    const event = { type: "Deep", data: ['[{"\\"[['.repeat(500), nested(198)], id: "deep" };
    expect(await events.append(event)).toMatchObject({ repeated: false });
    expect(await events.append(event)).toMatchObject({ repeated: true });
  });
});

it("an append that cannot be judged fails alone, and the others of its batch are appended", async () => {
  const directory = join(makeScratch(), "log");
  await using events = await openEvents(directory);
  await events.append({ type: "Sold", data: "damaged later", id: "sale-1" });
  await events.append({ type: "Sold", data: "whole" });
  const [segment = ""] = await readdir(join(directory, "segments"));
  const file = await open(join(directory, "segments", segment), "r+");
  const bytes = await file.readFile();
  await file.write("X", bytes.indexOf("damaged later"));
  await file.close();
  const calls = [
    events.append({ type: "Sold", data: "a bystander's" }),
    // To judge it, the damaged line has to be read.
    events.append({ type: "Sold", data: "damaged later", id: "sale-1" }),
    events.append({ type: "Sold", data: "another bystander's" }),
  ];
  expect(await settledCodes(calls)).toEqual(["ok", "CORRUPT", "ok"]);
  expect(await events.head()).toBe(4);
});

describe("an object that a caller changes after its call to append", () => {
  it("is compared by id as it was at the call", async () => {
    const events = memoryEvents();
    const cart = { pieces: 1 };
    const first = events.append({ type: "Sold", data: cart, id: "sale-1" });
    cart.pieces = 2;
    const second = events.append({ type: "Sold", data: cart, id: "sale-1" });
    expect(await settledCodes([first, second])).toEqual(["ok", "EVENT_ID_REUSED"]);
    expect((await events.last())?.data).toEqual({ pieces: 1 });
  });

  it("is reported in conflicts as it was at the call", async () => {
    const events = memoryEvents();
    const data = { pieces: 1 };
    const sold = events.append({ type: "Sold", data, tags: ["sku:1"] });
    const condition = { failIfEventsMatch: { tags: ["sku:1"] } };
    const refused = events.append({ type: "Sold", data: 0, tags: ["sku:1"] }, { condition });
    data.pieces = 99;
    await sold;
    await expect(refused).rejects.toMatchObject({ conflicts: [{ data: { pieces: 1 } }] });
  });
});

describe.each(["local", "share"] as const)("the gate of a log in mode %s", (mode) => {
  /** Asks without yielding to the event loop, as another process while this one computes. */
  async function openAsker(directory: string): Promise<() => boolean> {
    const path = join(directory, ".store.lock");
    const native = await loadNativeLock(path);
    const fd = openSync(path, lockFileFlags);
    onTestFinished(() => closeSync(fd));
    return () => {
      const isFree = native.tryLock(fd);
      if (isFree) native.unlock(fd);
      return isFree;
    };
  }

  async function openLog(): Promise<{ events: EventStore; isFree: () => boolean }> {
    const directory = join(makeScratch(), "log");
    const events = await openEvents(directory, { mode });
    onTestFinished(() => events.close());
    return { events, isFree: await openAsker(directory) };
  }

  it("is free when a caller gets its answer, so that a computing caller keeps no process out", async () => {
    const { events, isFree } = await openLog();
    for (let time = 0; time < 5; time++) {
      await events.append({ type: "Sold", data: time });
      expect(isFree()).toBe(true);
    }
    const condition = { failIfEventsMatch: "all" } as const;
    await events.append({ type: "Sold", data: 0 }, { condition }).catch(() => undefined);
    expect(isFree()).toBe(true);
  });

  it("is free when the last of several callers gets its answer", async () => {
    const { events, isFree } = await openLog();
    const seen: boolean[] = [];
    const call = async (data: number): Promise<void> => {
      await events.append({ type: "Sold", data });
      seen.push(isFree());
    };
    for (let time = 0; time < 5; time++) await Promise.all([call(1), call(2), call(3)]);
    expect(seen).toHaveLength(15);
    expect(seen.filter((_, index) => index % 3 === 2)).toEqual([true, true, true, true, true]);
  });
});
