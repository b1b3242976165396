// Reading never needs writing: on a full disk, on a read-only mount, as a user without write
// permission.
import { describe, expect, it } from "vitest";
import type { LogMode } from "../../src/events/model/event-store.ts";
import type { LogEventStore } from "../../src/events/log-store.ts";
import type { NewEvent } from "../../src/common.ts";
import { Upkeep } from "../../src/events/upkeep.ts";
import { refusingPorts, type Refusal, type RefusingPorts } from "../durable/refusing-ports.ts";
import { local, nfs, World } from "../sites/world.ts";
import { failureOf, listOf, numbers, openOn, positionsOf } from "../sites/event-logs.ts";
import { letTimePass } from "../sites/sites.ts";

const directory = "/log";

interface Site {
  readonly world: World;
  readonly writer: LogEventStore<NewEvent>;
  /** The ports of a process that may change nothing. */
  readonly ports: RefusingPorts;
}

/** A log of a few segments, some with an index, of a writer that is alive. */
async function makeSite(mode: LogMode, volume: typeof local, errno: Refusal): Promise<Site> {
  const world = new World({ volume });
  letTimePass(world);
  const writer = await openOn(world.ports("writer", "machine of the writer"), directory, { mode });
  for (const number of numbers(1, 12)) await append(writer, number);
  const machine = volume === nfs ? "machine of the reader" : "machine of the writer";
  return { world, writer, ports: refusingPorts(world.ports("reader", machine), errno) };
}

async function append(store: LogEventStore<NewEvent>, number: number): Promise<void> {
  await store.append({ type: number % 2 === 0 ? "Even" : "Odd", data: { number }, tags: [`n:${number}`] });
}

const refusals = [
  ["a read-only mount", "EROFS", "NO_PERMISSION"],
  ["a user without write permission", "EACCES", "NO_PERMISSION"],
  ["a full disk", "ENOSPC", "DISK_FULL"],
] as const;
const places = [
  ["a local log", "local", local],
  ["a log between machines on a local disk", "share", local],
  ["a log between machines on a share", "share", nfs],
] as const;

describe.each(refusals)("on/as %s", (_who, errno, code) => {
  describe.each(places)("%s", (_what, mode, volume) => {
    it("is read, with and without a query, while its writer goes on", async () => {
      const { writer, ports } = await makeSite(mode, volume, errno);
      const reader = await openOn(ports, directory);
      expect(await reader.head()).toBe(12);
      expect(positionsOf(await listOf(reader.read()))).toEqual(numbers(1, 12));
      expect(positionsOf(await listOf(reader.read({ types: ["Even"] }, { backwards: true, limit: 2 })))).toEqual([
        12, 10,
      ]);
      for (const number of numbers(13, 20)) await append(writer, number);
      expect((await reader.last({ tags: ["n:19"] }))?.position).toBe(19);
      expect(positionsOf(await listOf(reader.read({ types: ["Odd"] }, { after: 13 })))).toEqual([15, 17, 19]);
    });

    it("can be followed", async () => {
      const { writer, ports } = await makeSite(mode, volume, errno);
      const reader = await openOn(ports, directory);
      const stop = new AbortController();
      const seen: number[] = [];
      for await (const { position } of reader.subscribe("all", { signal: stop.signal, after: 10 })) {
        seen.push(position);
        if (position === 12) await append(writer, 13);
        if (position === 13) break;
      }
      expect(seen).toEqual([11, 12, 13]);
    });

    it("can be verified and exported", async () => {
      const { ports } = await makeSite(mode, volume, errno);
      const upkeep = new Upkeep(ports, directory);
      expect(await upkeep.verify({})).toMatchObject({ ok: true, checked: 12, problems: [] });
      const lines = (await listOf(upkeep.export({}))).join("").trimEnd().split("\n");
      expect(lines).toHaveLength(1 + 12 + 1);
    });

    it("refuses appends with the reason, and takes them once writing is possible", async () => {
      const { ports } = await makeSite(mode, volume, errno);
      const reader = await openOn(ports, directory);
      const failure = await failureOf(reader.append({ type: "Odd", data: 13 }));
      expect(failure).toMatchObject({ code });
      expect(await reader.head()).toBe(12);
      ports.allow();
      expect(await reader.append({ type: "Odd", data: 13 })).toMatchObject({ first: 13 });
      expect(positionsOf(await listOf(reader.read()))).toEqual(numbers(1, 13));
    });

    it("has consumers that reject with the reason, and that go on elsewhere", async () => {
      const { ports } = await makeSite(mode, volume, errno);
      const reader = await openOn(ports, directory);
      const consumer = reader.consume("mail", "all", async () => undefined);
      expect(await failureOf(consumer.done)).toMatchObject({ code });
    });
  });
});

it.each(["EROFS", "EACCES", "ENOSPC"] as const)("where there is no log, none can be made (%s)", async (errno) => {
  const world = new World();
  const ports = refusingPorts(world.ports("reader"), errno);
  const failure = await failureOf(openOn(ports, directory));
  expect(failure).toMatchObject({ code: errno === "ENOSPC" ? "DISK_FULL" : "NO_PERMISSION" });
});

it("a local log can be read whole after a restart, though no process with write permission has opened it since", async () => {
  const { ports, writer, world } = await makeSite("local", local, "EROFS");
  await writer.close();
  const machine = world.ports("after", "the same machine, started again");
  const reader = await openOn(refusingPorts(machine, "EROFS"), directory);
  expect(positionsOf(await listOf(reader.read()))).toEqual(numbers(1, 12));
  expect(ports.refused).toEqual([]);
});
