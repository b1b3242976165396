// One record of a log is damaged: what that costs, what `verify` says, and what a repair leaves. The log is in memory,
// with two consumers and two read models, of which one of each is damaged.
import { tmpdir } from "node:os";
import { describe, expect, it, onTestFinished } from "vitest";
import { isHoldfastError } from "../../src/errors.ts";
import { LogEventStore } from "../../src/events/log-store.ts";
import type { LogMode } from "../../src/events/model/event-store.ts";
import { plainCodec } from "../../src/events/model/codec.ts";
import type { ProjectionDefinition } from "../../src/events/projection/definition.ts";
import { openProjection } from "../../src/events/projection/projection.ts";
import { verifyDirectory } from "../../src/events/verify/verify.ts";
import type { NewEvent, VerifyReport } from "../../src/common.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { createMemoryPorts } from "../../src/ports/memory/ports.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { asNewerFormat } from "../durable/newer-format.ts";
import { listOf } from "../sites/event-logs.ts";

const directory = "/log";
const bytesMax = 1 << 26;

type Sold = NewEvent<"Sold", { sku: string }>;

function countsOf(name: string): ProjectionDefinition<number, Sold> {
  return { name, query: "all", key: ({ data }) => data.sku, apply: (count = 0) => count + 1 };
}

class World {
  readonly ports: Ports;
  readonly mode: LogMode;

  private constructor(ports: Ports, mode: LogMode) {
    this.ports = ports;
    this.mode = mode;
  }

  static async make(mode: LogMode): Promise<World> {
    const world = new World(createMemoryPorts(await openNodePorts(tmpdir())), mode);
    const store = await world.open();
    for (let index = 0; index < 6; index++) await store.append({ type: "Sold", data: { sku: `s${index % 2}` } });
    for (const name of ["mail", "print"]) {
      const consumer = store.consume(name, "all", async () => undefined);
      await consumer.waitUntilProcessed(6);
      await consumer.stop();
    }
    for (const name of ["shelves", "prices"]) await (await openProjection(store, countsOf(name))).rebuild();
    await store.close();
    return world;
  }

  /** All files as they are: making them anew takes longer. */
  async copy(): Promise<World> {
    const copy = new World(createMemoryPorts(await openNodePorts(tmpdir())), this.mode);
    await copyTree(this.ports.disk, copy.ports.disk, directory);
    return copy;
  }

  async open(): Promise<LogEventStore<Sold>> {
    const { ports, mode } = this;
    const store = new LogEventStore<Sold>({ ports, directory, codec: plainCodec }, { mode, segmentBytesMax: 400 });
    await store.open();
    onTestFinished(() => store.close());
    return store;
  }

  async verify(repair: boolean): Promise<VerifyReport> {
    return await verifyDirectory(this.ports, directory, repair ? { repair } : {});
  }

  async findNewest(below: string, pattern: RegExp): Promise<string> {
    const names = (await filesBelow(this.ports.disk, `${directory}/${below}`)).filter((path) => pattern.test(path));
    const newest = names.sort().at(-1);
    if (newest === undefined) throw new Error(`no ${String(pattern)} below ${below}`);
    return newest;
  }
}

async function copyTree(from: Disk, to: Disk, path: string): Promise<void> {
  await to.mkdir(path);
  for (const name of await from.list(path)) {
    const each = `${path}/${name}`;
    if ((await from.stat(each)).kind === "directory") await copyTree(from, to, each);
    else await to.createFile(each, await from.readFile(each, bytesMax), { sync: false });
  }
}

async function filesBelow(disk: Disk, path: string): Promise<string[]> {
  if ((await disk.stat(path)).kind !== "directory") return [path];
  const files: string[] = [];
  for (const name of await disk.list(path)) files.push(...(await filesBelow(disk, `${path}/${name}`)));
  return files;
}

async function replaceFile(disk: Disk, path: string, change: (bytes: Buffer) => Uint8Array): Promise<void> {
  const bytes = change(Buffer.from(await disk.readFile(path, bytesMax)));
  await disk.unlink(path);
  await disk.createFile(path, bytes, { sync: false });
}

const damages = {
  "with one flipped bit": (disk: Disk, path: string) =>
    replaceFile(disk, path, (bytes) => {
      const middle = Math.floor(bytes.length / 2);
      bytes[middle] = (bytes[middle] ?? 0) ^ 4;
      return bytes;
    }),
  "that was truncated": (disk: Disk, path: string) =>
    replaceFile(disk, path, (bytes) => bytes.subarray(0, bytes.length / 2)),
  "that is empty": (disk: Disk, path: string) => replaceFile(disk, path, () => new Uint8Array()),
  "that is a directory": async (disk: Disk, path: string) => {
    await disk.unlink(path);
    await disk.mkdir(path);
  },
} as const;

interface DamagedRecord {
  readonly find: (world: World) => Promise<string>;
  /** The log does not open until it is repaired. */
  readonly isShut?: true;
  /** No consumer and no read model can work until it is repaired. */
  readonly stopsWork?: true;
  /** It is made anew without a repair where it is merely torn. */
  readonly heals?: true;
}

const slot = /\/\d{10}-\w{26}\/\d{10}$/;
const epoch = /\/epochs\/\d{10}$/;
const newest =
  (below: string, pattern: RegExp) =>
  (world: World): Promise<string> =>
    world.findNewest(below, pattern);

const records: Readonly<Record<string, DamagedRecord>> = {
  "the record of the log": { find: newest("log.json", /./), isShut: true },
  "the record of the gate": { find: newest("gate.json", /./), isShut: true },
  "the record of the ground": { find: newest(".holdfast/ground.json", /./), isShut: true },
  "the newest slot of the lock table": { find: newest(".holdfast/table", slot), stopsWork: true, heals: true },
  "the newest epoch of the lock table": { find: newest(".holdfast/table", epoch), stopsWork: true },
  "the newest checkpoint of a consumer": { find: newest("consumers/mail", slot) },
  "the newest epoch of a consumer": { find: newest("consumers/mail", epoch) },
  "a document": { find: newest("projections/shelves", /\/[0-9a-f]{32}\.[0-9-]+$/) },
  "the newest checkpoint of a read model": { find: newest("projections/shelves/0000000001/checkpoint", slot) },
  "the newest epoch of its checkpoints": { find: newest("projections/shelves/0000000001/checkpoint", epoch) },
  "the newest slot of its catalog": { find: newest("projections/shelves/catalog", slot) },
  "the newest epoch of its catalog": { find: newest("projections/shelves/catalog", epoch) },
};

async function consumeAll(store: LogEventStore<Sold>, name: string): Promise<number[]> {
  const positions: number[] = [];
  const head = await store.head();
  const consumer = store.consume(name, "all", async ([event]) => void positions.push(event?.position ?? 0));
  await consumer.waitUntilProcessed(head);
  await consumer.stop();
  return positions;
}

async function countAll(store: LogEventStore<Sold>, name: string): Promise<unknown[]> {
  const projection = await openProjection(store, countsOf(name));
  await using _run = projection.run();
  await projection.waitUntilProcessed(await store.head());
  return [await projection.get("s0"), await projection.get("s1")];
}

/** Before the repair: everything that does not rest on the damaged record. */
async function expectOthersWork(world: World, { isShut, stopsWork }: DamagedRecord): Promise<void> {
  if (isShut) return await expect(world.open()).rejects.toMatchObject({ code: "CORRUPT" });
  const store = await world.open();
  expect(await listOf(store.read())).toHaveLength(6);
  await store.append({ type: "Sold", data: { sku: "s0" } });
  expect(await (await openProjection(store, countsOf("prices"))).get("s0")).toBe(3);
  if (stopsWork) await expect(consumeAll(store, "print")).rejects.toMatchObject({ code: "CORRUPT" });
  else {
    expect(await consumeAll(store, "print")).toEqual([7]);
    expect(await countAll(store, "prices")).toEqual([4, 3]);
  }
  await store.close();
}

/** After the repair: as if nothing had happened, except that a consumer may get an event again. */
async function expectWhole(world: World): Promise<void> {
  const store = await world.open();
  await store.append({ type: "Sold", data: { sku: "s1" } });
  const head = await store.head();
  const events = await listOf(store.read());
  expect(events.map(({ position }) => position)).toEqual(Array.from({ length: head }, (_, index) => index + 1));
  for (const name of ["mail", "print"]) {
    const positions = await consumeAll(store, name);
    expect(positions).toEqual(
      Array.from({ length: positions.length }, (_, index) => head - positions.length + 1 + index),
    );
    expect(positions.length).toBeGreaterThan(0);
  }
  const expected = ["s0", "s1"].map((sku) => events.filter(({ data }) => data.sku === sku).length);
  for (const name of ["shelves", "prices"]) expect(await countAll(store, name)).toEqual(expected);
  await store.close();
}

describe.each(["local", "share"] as const)("a log in mode %s with", (mode) => {
  let template: Promise<World> | undefined;
  const makeWorld = async (): Promise<World> => await (await (template ??= World.make(mode))).copy();

  describe.each(Object.entries(records))("%s", (_, record) => {
    it.each(Object.keys(damages) as (keyof typeof damages)[])(
      "%s costs that record, is named by verify, and is repaired",
      async (name) => {
        const world = await makeWorld();
        const path = await record.find(world);
        await damages[name](world.ports.disk, path);
        const isTorn = name === "that was truncated" || name === "that is empty";
        if (record.heals && isTorn) return await expectWhole(world);
        const before = await world.verify(false);
        const named = before.problems.filter(({ severity }) => severity === "damage");
        expect(before.ok).toBe(false);
        expect(named.map((problem) => path.startsWith(problem.path))).toEqual([true]);
        await expectOthersWork(world, record);
        const repaired = await world.verify(true);
        expect(repaired.ok).toBe(true);
        expect(repaired.problems.filter(({ severity }) => severity === "damage").every((each) => each.repaired)).toBe(
          true,
        );
        expect(await world.verify(false)).toMatchObject({ ok: true, problems: [] });
        await expectWhole(world);
      },
    );

    it("in a newer format is refused by name, and no repair touches it", async () => {
      const world = await makeWorld();
      const { disk } = world.ports;
      const path = await record.find(world);
      await replaceFile(disk, path, asNewerFormat);
      const before = Buffer.from(await disk.readFile(path, bytesMax));
      for (const repair of [false, true]) {
        const report = await world.verify(repair).catch((error: unknown) => error);
        if (!isHoldfastError(report, "NEWER_FORMAT")) {
          expect(report).toMatchObject({ ok: false });
          expect(JSON.stringify(report)).toContain("newer format");
        }
      }
      expect(Buffer.from(await disk.readFile(path, bytesMax)).equals(before)).toBe(true);
    });
  });
});
