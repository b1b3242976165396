// Which writer may write into a segment between machines: the one that the chain names, until its
// last publish.
import { readdirSync } from "node:fs";
import { expect, it } from "vitest";
import type { NewEvent } from "../../src/common.ts";
import { plainCodec } from "../../src/events/model/codec.ts";
import { createCodec } from "../../src/events/erasure/erasure-codec.ts";
import { LogEventStore } from "../../src/events/log-store.ts";
import type { DiskFile } from "../../src/ports/disk.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import { changedDisk } from "../sites/disks.ts";
import { nfs, World } from "../sites/world.ts";
import { makeScratch } from "../sites/scratch.ts";

/** Counts what is written into segments. */
function countingWrites(ports: Ports, counted: { writes: number }): Ports {
  const disk = changedDisk(ports.disk, (real) => ({
    open: async (path, mode) => {
      const file = await real.open(path, mode);
      if (!path.includes("/segments/")) return file;
      return new Proxy<DiskFile>(file, {
        get: (target, key) => {
          if (key === "write") counted.writes++;
          const value: unknown = Reflect.get(target, key);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
    },
  }));
  return { ...ports, disk };
}

it("a call made right after another is written in its own tenure, and once", async () => {
  const directory = `${makeScratch()}/log`;
  const counted = { writes: 0 };
  const ports = countingWrites(await openNodePorts(directory), counted);
  const store = new LogEventStore({ ports, directory, codec: createCodec({}) }, { mode: "share" });
  // Each call is queued before the tenure of the one before has ended, and after its last publish.
  for (let n = 1; n <= 5; n++) await store.append({ type: "Counted", data: n });
  expect(counted.writes).toBe(5);
  await store.close();
});

it("a process that dies in an append keeps other machines waiting for its lease, and hardly longer", async () => {
  const leaseMs = 2000;
  const waits: number[] = [];
  for (let at = 1; ; at++) {
    const world = new World({ volume: nfs });
    const open = (process: string): Promise<LogEventStore<NewEvent>> =>
      new LogEventStore(
        { ports: world.ports(process, `machine of ${process}`), directory: "/log", codec: plainCodec },
        { mode: "share", leaseMs, lockTimeoutMs: 600_000 },
      ).open();
    const [ada, bob] = [await open("ada"), await open("bob")];
    let isDone = false;
    await world.killAtCall("ada", at, async () => {
      await ada.append({ type: "Tried", data: at });
      isDone = true;
    });
    if (isDone) break;
    const fromMs = world.nowMs;
    const appended = bob.append({ type: "After", data: at }).then(() => waits.push(world.nowMs - fromMs));
    while (waits.length < at && world.nowMs - fromMs < 600_000) await world.advance(50);
    await appended;
  }
  // Some of these calls were made under the gate.
  expect(Math.max(...waits)).toBeGreaterThan(leaseMs / 2);
  expect(Math.max(...waits)).toBeLessThan(leaseMs * 2);
});

it.each(["local", "share"] as const)(
  "no line goes into a full segment, however long a process keeps the gate: mode %s",
  async (mode) => {
    const directory = `${makeScratch()}/log`;
    const ports = await openNodePorts(directory);
    const store = new LogEventStore({ ports, directory, codec: createCodec({}) }, { mode, segmentBytesMax: 1000 });
    // More than a batch: the next one waits while this one is written.
    await Promise.all(Array.from({ length: 3000 }, (_, n) => store.append({ type: "Counted", data: n })));
    expect(readdirSync(`${directory}/segments`).length).toBeGreaterThanOrEqual(3);
    await store.close();
  },
);

it("added tags take effect in the order of the calls, also on a slow disk", async () => {
  const directory = `${makeScratch()}/log`;
  const real = await openNodePorts(directory);
  const disk = changedDisk(real.disk, ({ list, readFile, open }) => {
    const late = async <T>(call: () => Promise<T>): Promise<T> => {
      // Time passes: that is what makes it slow.
      await new Promise((resolve) => setTimeout(resolve, 5));
      return await call();
    };
    return {
      list: (path) => late(() => list.call(real.disk, path)),
      readFile: (path, bytesMax) => late(() => readFile.call(real.disk, path, bytesMax)),
      open: (path, mode) => late(() => open.call(real.disk, path, mode)),
    };
  });
  const ports = { ...real, disk };
  const store = new LogEventStore({ ports, directory, codec: createCodec({}) }, { mode: "share" });
  await store.append({ type: "Noted", data: 1 });
  const condition = { failIfEventsMatch: { tags: ["late"] } };
  const answers = await Promise.allSettled([
    store.append({ type: "Noted", data: 2 }, { condition }),
    store.addTags([1], ["late"]),
    new Promise((resolve) => setImmediate(resolve)).then(() => store.append({ type: "Noted", data: 3 }, { condition })),
  ]);
  expect(answers).toMatchObject([
    { status: "fulfilled" },
    { status: "fulfilled" },
    { reason: { code: "APPEND_CONDITION_FAILED" } },
  ]);
  await store.close();
});
