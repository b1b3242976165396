// Reading by time: exactly the events that were recorded in the window, whatever the clocks of their writers were, and
// without reading the segments that have none.
import { tmpdir } from "node:os";
import { describe, expect, it, onTestFinished } from "vitest";
import { encodeHeader, getLayout, layoutOf } from "../../src/events/index/file/index-layout.ts";
import { memoryEvents } from "../../src/events/index.ts";
import { LogEventStore } from "../../src/events/log-store.ts";
import { encodeContent, encodeLine } from "../../src/events/log/format/line.ts";
import { readLine } from "../../src/events/log/read/line-keys.ts";
import { plainCodec } from "../../src/events/model/codec.ts";
import type { ReadOptions } from "../../src/events/model/event-store.ts";
import type { NewEvent } from "../../src/common.ts";
import { createMemoryPorts } from "../../src/ports/memory/ports.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { listOf } from "./index/model-log.ts";

const startMs = Date.parse("2026-11-18T08:00:00.000Z");
const minute = 60_000;
const at = (minutes: number): Date => new Date(startMs + minutes * minute);

interface World {
  readonly opened: string[];
  /** A process whose clock shows this many minutes after the start; each append takes one minute. */
  open(minutes: number): Promise<LogEventStore<NewEvent>>;
}

async function makeWorld(): Promise<World> {
  const ports = createMemoryPorts(await openNodePorts(tmpdir()));
  const opened: string[] = [];
  const disk: Ports["disk"] = new Proxy(ports.disk, {
    get: (target, name) => {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        if (name === "open" && String(args[0]).includes("/segments/")) opened.push(String(args[0]));
        return (value as (...given: unknown[]) => unknown).apply(target, args);
      };
    },
  });
  return {
    opened,
    open: async (minutes) => {
      let wallMs = startMs + minutes * minute;
      const clock = { ...ports.clock, wallMs: () => (wallMs += minute) };
      const options = { segmentBytesMax: 1, leaseMs: 60_000 };
      const store = new LogEventStore(
        { ports: { ...ports, disk, clock }, directory: "/log", codec: plainCodec },
        options,
      );
      onTestFinished(() => store.close());
      return await store.open();
    },
  };
}

const positionsOf = async (events: AsyncIterable<{ position: number }>): Promise<number[]> =>
  (await listOf(events)).map(({ position }) => position);

describe("a read with since and until", () => {
  it("gives exactly the events of the window although the clocks of two writers differ by hours", async () => {
    const world = await makeWorld();
    const [ahead, behind] = [await world.open(120), await world.open(-120)];
    for (let round = 0; round < 10; round++) {
      await ahead.append({ type: "Sold", data: round, tags: ["till:1"] });
      await behind.append([
        { type: "Sold", data: round, tags: ["till:2"] },
        { type: "Returned", data: round, tags: ["till:2"] },
      ]);
    }
    const reader = await world.open(0);
    const all = await listOf(reader.read());
    const times = all.map(({ time }) => Date.parse(time));
    expect(times.toSorted((a, b) => a - b)).not.toEqual(times);
    for (const store of [ahead, reader])
      for (const [from, to] of [
        [times[4], times[13]],
        [times[1], times[29]],
        [times[7], times[7]],
        [times[28], Infinity],
      ])
        for (const backwards of [false, true])
          for (const query of ["all", { types: ["Sold"] }, { tags: ["till:2"] }] as const) {
            const options: ReadOptions = { backwards, after: 2 };
            if (from !== undefined) options.since = new Date(from);
            if (to !== undefined && to !== Infinity) options.until = new Date(to).toISOString();
            const expected = (await listOf(store.read(query, { backwards, after: 2 }))).filter(({ time }) => {
              const ms = Date.parse(time);
              return ms >= (from ?? -Infinity) && ms < (to ?? Infinity);
            });
            expect(await positionsOf(store.read(query, options))).toEqual(expected.map(({ position }) => position));
            const first = expected.slice(0, 1).map(({ position }) => position);
            expect(await positionsOf(store.read(query, { ...options, limit: 1 }))).toEqual(first);
          }
  });

  it("reads only the segments that have such an event", async () => {
    const world = await makeWorld();
    const writer = await world.open(0);
    // One segment for each append; six of them share an index.
    for (let index = 0; index < 40; index++) await writer.append({ type: "Sold", data: index });
    await writer.close();
    const reader = await world.open(0);
    // Makes the indexes that are missing.
    expect(await positionsOf(reader.read({ types: ["Other"] }))).toEqual([]);
    const [wanted] = await listOf(reader.read("all", { after: 19, limit: 1 }));
    const since = new Date(wanted?.time ?? "");
    const until = new Date(since.getTime() + 1);
    world.opened.length = 0;
    expect(await positionsOf(reader.read("all", { since, until }))).toEqual([20]);
    expect(await positionsOf(reader.read({ types: ["Sold"] }, { since, until }))).toEqual([20]);
    expect(new Set(world.opened)).toEqual(new Set(["/log/segments/0000000020.ndjson"]));
    world.opened.length = 0;
    expect(await positionsOf(reader.read("all", { since: at(10_000) }))).toEqual([]);
    expect(await positionsOf(reader.read("all", { until: at(-10_000) }))).toEqual([]);
    expect(world.opened).toEqual([]);
  });

  it("takes dates and ISO times with a zone; half-open", async () => {
    const store = memoryEvents();
    await store.append({ type: "Sold", data: 1 });
    const [{ time } = { time: "" }] = await listOf(store.read());
    const later = new Date(Date.parse(time) + 1);
    expect(await positionsOf(store.read("all", { since: time }))).toEqual([1]);
    expect(await positionsOf(store.read("all", { until: time }))).toEqual([]);
    expect(await positionsOf(store.read("all", { since: "2020-01-01", until: later }))).toEqual([1]);
    expect(await positionsOf(store.read("all", { since: later, until: "2020-01-01T00:00+01:00" }))).toEqual([]);
    for (const since of [
      "2026-11-18T08:00",
      "yesterday",
      "",
      "2026-13-01",
      "2026-02-30",
      "2026-02-30T08:00Z",
      new Date(Number.NaN),
    ])
      expect(() => store.read("all", { since })).toThrow(RangeError);
    expect(() => store.read("all", { until: 5 as never })).toThrow(TypeError);
  });
});

it.each([
  ["2026-11-16T08:00:00.123Z"],
  ["0050-01-01T00:00:00.000Z"],
  ["+012026-01-01T00:00:00.000Z"],
  ["2026-11-16T08:00:00Z"],
  ["Mon Nov 16 2026 08:00:00"],
  ["not a time"],
])("the time of a line, read from its bytes, is that of its text: %s", (time) => {
  const events = [{ type: "Sold", tags: [], id: "1" }];
  const { text } = encodeLine(encodeContent({ events, payload: ["{}"] }), 1, time, 0);
  expect(readLine(1, "segment", { offset: 0, bytes: Buffer.from(text), crc: 0 }).line.timeMs).toBe(Date.parse(time));
});

it("an index of an earlier version, without times, is used, and says that they are not known", () => {
  const segments = [1, 2].map((number) => ({ number, first: number, last: number, length: 5, checksum: "00000000" }));
  const coverage = { logId: "x", segments };
  const record = (times: Parameters<typeof encodeHeader>[1]): Uint8Array => {
    const bytes = encodeHeader(coverage, times, layoutOf(1, 2));
    return bytes.subarray(0, bytes.indexOf(10) + 1);
  };
  expect(getLayout(record([]), coverage, "x").times).toEqual([undefined, undefined]);
  const times = [undefined, { from: -5, to: 7 }];
  expect(getLayout(record(times), coverage, "x").times).toEqual(times);
});
