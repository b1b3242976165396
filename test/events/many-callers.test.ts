// Thousands of callers in one process: the cost of each does not grow with their number.
import { getEventListeners } from "node:events";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { onAbort } from "../../src/durable/wait/on-abort.ts";
import { memoryEvents } from "../../src/events/index.ts";
import { LogGrowth } from "../../src/events/log/read/growth.ts";
import { createMemoryPorts } from "../../src/ports/memory/ports.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { openOn } from "../sites/event-logs.ts";
import { makeScratch } from "../sites/scratch.ts";

const many = 10_000;

/** A log that is only a head. */
async function openHints() {
  const ports = createMemoryPorts(await openNodePorts(makeScratch()));
  await ports.disk.mkdir("/log");
  const log = { head: 0, looks: 0 };
  const hints = new LogGrowth({ ports, hasHints: true }, "/log", async () => {
    log.looks++;
    return log.head;
  });
  onTestFinished(() => hints.close());
  return { hints, log };
}

describe("ten thousand waiters for the growth of a log", () => {
  it("share one look, and are resolved a few at a time", async () => {
    const { hints, log } = await openHints();
    const { signal } = new AbortController();
    let told = 0;
    const waits = Array.from({ length: many }, async () => {
      expect(await hints.waitBeyond(0, { signal })).toBe(1);
      told++;
    });
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    await vi.waitFor(() => expect(log.looks).toBeGreaterThanOrEqual(3));
    log.head = 1;
    const before = log.looks;
    hints.wakeAll();
    let mostAtOnce = 0;
    while (told < many) {
      const toldBefore = told;
      await new Promise(setImmediate);
      mostAtOnce = Math.max(mostAtOnce, told - toldBefore);
    }
    await Promise.all(waits);
    expect(mostAtOnce).toBeLessThan(500);
    expect(log.looks - before).toBeLessThan(10);
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  it("are cancelled together by one signal", async () => {
    const { hints, log } = await openHints();
    const controller = new AbortController();
    const waits = Array.from({ length: many }, () => hints.waitBeyond(0, { signal: controller.signal }));
    controller.abort(new Error("enough"));
    for (const end of await Promise.allSettled(waits))
      expect(end).toMatchObject({ status: "rejected", reason: { message: "enough" } });
    log.head = 1;
    expect(await hints.waitBeyond(0)).toBe(1);
  });

  it("reject when the log is closed, and when a look fails", async () => {
    const { hints } = await openHints();
    const waits = Array.from({ length: 3 }, () => hints.waitBeyond(0));
    hints.close();
    for (const end of await Promise.allSettled(waits)) expect(end).toMatchObject({ reason: { code: "CLOSED" } });
    await expect(hints.waitBeyond(0)).rejects.toMatchObject({ code: "CLOSED" });
  });
});

it("a failed look rejects the current waiters, and the next waiter looks again", async () => {
  const ports = createMemoryPorts(await openNodePorts(makeScratch()));
  let isBroken = true;
  const hints = new LogGrowth({ ports, hasHints: true }, "/", async () => {
    if (isBroken) throw new Error("broken");
    return 1;
  });
  onTestFinished(() => hints.close());
  await expect(hints.waitBeyond(0)).rejects.toThrow("broken");
  isBroken = false;
  expect(await hints.waitBeyond(0)).toBe(1);
});

describe("appends under one signal", () => {
  it("add one listener to it, and are all cancelled by it before they are written", async () => {
    const events = memoryEvents();
    await events.append({ type: "Sold", data: 0 });
    const controller = new AbortController();
    const { signal } = controller;
    const calls = Array.from({ length: many }, (_, data) => events.append({ type: "Sold", data }, { signal }));
    expect(getEventListeners(signal, "abort").length).toBeLessThanOrEqual(1);
    controller.abort(new Error("enough"));
    const ends = await Promise.allSettled(calls);
    expect(ends.every((end) => end.status === "rejected")).toBe(true);
    expect(await events.head()).toBe(1);
  });

  it("remove their listener when they are answered", async () => {
    const events = memoryEvents();
    const { signal } = new AbortController();
    await Promise.all([1, 2, 3].map((data) => events.append({ type: "Sold", data }, { signal })));
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });
});

it("a listener that was removed is not called by an abort", () => {
  const controller = new AbortController();
  const called: string[] = [];
  const [takeBack] = ["one", "other"].map((name) => onAbort(controller.signal, () => called.push(name)));
  takeBack?.();
  controller.abort();
  expect(called).toEqual(["other"]);
});

describe("callers that append again as soon as they are answered", () => {
  it("share every batch, however many they are", async () => {
    const ports = createMemoryPorts(await openNodePorts(makeScratch()));
    let ms = 1_700_000_000_000;
    // A batch has one time, and here no other batch has the same.
    const clock = { ...ports.clock, wallMs: () => ms++ };
    await ports.disk.mkdir("/log");
    const events = await openOn({ ...ports, clock }, "/log", { mode: "local", segmentBytesMax: undefined });
    const [callers, times] = [16, 10];
    const call = async (): Promise<void> => {
      for (let time = 0; time < times; time++) await events.append({ type: "Sold", data: time });
    };
    await Promise.all(Array.from({ length: callers }, call));
    const batches = new Map<string, number>();
    for await (const { time } of events.read("all")) batches.set(time, (batches.get(time) ?? 0) + 1);
    expect([...batches.values()]).toEqual(Array.from({ length: times }, () => callers));
  });
});
