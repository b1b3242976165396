// The lock table: several tasks of one process at the same time, disks that fail, and forged
// records.
import { existsSync, readdirSync, statSync } from "node:fs";
import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path/posix";
import { afterEach, beforeEach, expect, it } from "vitest";
import { slotKind } from "../../src/durable/chain/epoch.ts";
import { encodeRecord } from "../../src/format/record.ts";
import type { TablePathLocks } from "../../src/locks/path/table-path-locks.ts";
import { tableKind, type TableRequest } from "../../src/locks/table/request.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import { nfs } from "../sites/world.ts";
import { LocksWorld, withDisk } from "../sites/path-locks.ts";
import { keep } from "./keep.ts";

let world: LocksWorld;
beforeEach(async () => {
  world = await LocksWorld.make();
});
afterEach(() => world.end());

it("a request that one task condemned is dropped, though an append of another task was under way", async () => {
  let halt: (() => Promise<void>) | undefined;
  const tamper = withDisk((disk) => ({
    link: async (from, to) => {
      await halt?.();
      await disk.link(from, to);
    },
  }));
  const [holder, { table }] = [await world.open(), await world.open({ tamper })];
  const hold = await holder.acquire("x");
  const { requests } = (await table.read()).state;
  const isUnderWay = signalled();
  const isCondemned = signalled();
  // The first append has derived its state, which has the request, before that is condemned.
  halt = async () => {
    halt = undefined;
    isUnderWay.resolve();
    await isCondemned.promise;
  };
  const first = table.append((list) => list);
  await isUnderWay.promise;
  const dropped = table.drop(requests);
  isCondemned.resolve();
  await Promise.all([first, dropped]);
  expect((await table.read()).state.requests).toEqual([]);
  await expect(hold.assertHeld()).rejects.toMatchObject({ code: "LOCK_LOST" });
});

// A process that had been taken for dead while it slept took every hold for released. Its next
// append dropped live requests.
it("a process whose temp directory was swept drops no live holder, and goes on with another session", async () => {
  const tamper = withDisk(() => ({ volume: nfs }));
  const [holder, sleeper] = [await world.open({ tamper }), await world.open({ tamper })];
  const hold = await holder.acquire("x");
  const { ground } = sleeper.table;
  const life = await ground.session();
  await rename(ground.layout.record(life.holder.id), ground.layout.deathRecord(life.holder.id));
  await rm(life.temp, { recursive: true });
  await expect(sleeper.tryAcquire("x")).rejects.toMatchObject({ code: "LOCK_LOST" });
  expect(life.signal.aborted).toBe(true);
  expect(await sleeper.tryAcquire("x")).toBeUndefined();
  await (await sleeper.acquire("y")).release();
  await hold.assertHeld();
});

it("a lock that was won is given out, though tidying up after it fails", async () => {
  let fails = false;
  const tamper = withDisk((disk) => ({
    canOpen: async (path) => {
      if (fails && path.includes("/holds/")) throw diskError("EIO", "open", path);
      return await disk.canOpen(path);
    },
  }));
  const [other, locks] = [await world.open(), await world.open({ tamper })];
  for (let count = 0; count < 31; count++) await keep(other.acquire(`f${count}`));
  fails = true;
  const hold = await locks.acquire("x");
  fails = false;
  await hold.release();
  await (await other.acquire("x")).release();
});

/**
 * Ports of a process for which, once it is `armed`, the next slot is linked and nothing is answered
 * until it is over.
 */
function outage() {
  const state: { now: "quiet" | "armed" | "out" } = { now: "quiet" };
  const orFail = <T>(operation: string, path: string, action: () => Promise<T>): Promise<T> =>
    state.now === "out" ? Promise.reject(diskError("EIO", operation, path)) : action();
  const tamper = withDisk((disk) => ({
    link: async (from, to) => {
      await orFail("link", to, () => disk.link(from, to));
      if (state.now === "armed" && to.includes("/table/")) state.now = "out";
      await orFail("link", to, async () => undefined);
    },
    readFile: (path, bytesMax) => orFail("read", path, () => disk.readFile(path, bytesMax)),
    unlink: (path) => orFail("unlink", path, () => disk.unlink(path)),
  }));
  return { state, tamper };
}

it("a request of unknown outcome is dropped by its maker", async () => {
  const { state, tamper } = outage();
  const [other, locks] = [await world.open(), await world.open({ tamper })];
  state.now = "armed";
  await expect(locks.acquire("x")).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
  state.now = "quiet";
  expect((await other.table.read()).state.requests).toHaveLength(1);
  // Without another call of the process that was not told.
  await (await other.acquire("x", { timeoutMs: 10_000 })).release();
  await (await locks.acquire("x")).release();
});

it("a request that becomes unwanted while an older append cleans up is still dropped", async () => {
  const { state, tamper } = outage();
  const begun = signalled();
  const goOn = signalled();
  let holdsUp = false;
  const [other, third, locks] = [
    await world.open(),
    await world.open(),
    await world.open({
      tamper: (ports) =>
        withDisk((disk) => ({
          unlink: async (path) => {
            if (holdsUp && path.includes("/holds/")) {
              holdsUp = false;
              begun.resolve();
              await goOn.promise;
            }
            await disk.unlink(path);
          },
        }))(tamper(ports)),
    }),
  ];
  await keep(other.acquire("y"));
  const { requests } = (await locks.table.read()).state;
  holdsUp = true;
  const dropping = locks.table.drop(requests);
  await begun.promise;
  state.now = "armed";
  await expect(locks.acquire("x")).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
  state.now = "quiet";
  goOn.resolve();
  await dropping;
  await (await third.acquire("x", { timeoutMs: 10_000 })).release();
});

it("a full table has room again when requests are over, though no process has looked at them since", async () => {
  const [a, b] = [await world.open(), await world.open()];
  const long = `${"x".repeat(250)}/`.repeat(14);
  const many = (prefix: string) => Array.from({ length: 320 }, (_, index) => `${prefix}/${long}${index}`);
  const holds = [];
  for (const prefix of ["1", "2", "3"]) holds.push(await a.acquireAll(many(prefix)));
  await expect(b.acquireAll(many("4"))).rejects.toMatchObject({ code: "TOO_LARGE" });
  for (const hold of holds) await hold.release();
  await (await b.acquireAll(many("4"))).release();
});

// A hold file was a second name of its slot, and a slot had the whole table: 1,500 live locks filled 469 MB.
it("the disk that live locks take grows with their number, and not with its square", async () => {
  const locks = await world.open();
  const holds = [];
  const bytesOf = (): number =>
    readdirSync(join(locks.table.ground.layout.directory, "holds"))
      .map((name) => statSync(join(locks.table.ground.layout.directory, "holds", name)).size)
      .reduce((sum, size) => sum + size, 0);
  for (let index = 0; index < 200; index++) holds.push(await locks.acquire(`held/${index}`));
  const first = bytesOf();
  for (let index = 200; index < 400; index++) holds.push(await locks.acquire(`held/${index}`));
  expect(bytesOf()).toBeLessThan(2.5 * first);
  expect((await (await world.open()).list()).length).toBe(400);
  for (const hold of holds) await hold.release();
});

it("a table with a request that leads out of its directory is corrupt, and nothing is removed", async () => {
  await writeFile(join(world.root, "precious"), "");
  const locks = await world.open();
  await (await locks.acquire("a")).release();
  const { state, number } = await locks.table.read();
  await locks.close();
  const table = join(world.root, ".holdfast/table");
  const [epoch = ""] = readdirSync(table).filter((name) => name.includes("-"));
  const [first = ""] = readdirSync(join(table, epoch)).filter((name) => /^\d+$/.test(name));
  const request = state.requests[0] as TableRequest;
  for (const [index, hostile] of [
    { ...request, id: "../../precious" },
    { ...request, id: `${request.holder}.x/../../../precious` },
    { ...request, holder: "../../precious" },
  ].entries()) {
    const next = number + 1;
    const bytes = encodeRecord(
      slotKind(tableKind, { hasDeltas: true }),
      { id: `x${index}`, number: next, state: { requests: [hostile], redos: [] } },
      { isChecked: true },
    );
    await writeFile(join(table, epoch, String(next).padStart(first.length, "0")), bytes);
    await expect(world.open()).rejects.toMatchObject({ code: "CORRUPT" });
    expect(existsSync(join(world.root, "precious"))).toBe(true);
  }
});

function signalled(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

/** The calls wait for an append that is in progress, and so share the next slot. */
async function atOnce<T>({ table }: Pick<TablePathLocks, "table">, ...calls: (() => Promise<T>)[]): Promise<T[]> {
  const [, ...answers] = await Promise.all([table.append((state) => state), ...calls.map((call) => call())]);
  return answers;
}

it("requests that are made at once share a slot, and each has its hold file", async () => {
  const locks = await world.open();
  const holds = await atOnce(locks, ...["a", "b", "c"].map((path) => () => locks.acquire(path)));
  const { requests } = (await locks.table.read()).state;
  expect(new Set(requests.map(({ fence }) => fence)).size).toBe(1);
  for (const { id } of requests) expect(existsSync(locks.table.markOf(id))).toBe(true);
  await holds[1]!.release();
  expect((await locks.table.standing(requests)).map(({ claims }) => claims[0]?.path)).toEqual(["a", "c"]);
});

it("two requests that conflict never share a slot: the later one has the higher fence", async () => {
  const { table } = await world.open();
  const { holder } = await table.ground.session();
  const request = (path: string) => () =>
    table.request(({ requests, redos }, made) => {
      const claims = [{ path, mode: "exact" as const, shared: false }];
      return { requests: [...requests, { ...made, holder: holder.id, claims, sinceMs: 0 }], redos };
    });
  await atOnce({ table }, request("x"), request("x"), request("y"));
  const { requests } = (await table.read()).state;
  const fences = requests.filter(({ claims }) => claims[0]?.path === "x").map(({ fence }) => fence);
  expect(fences[1]).toBeGreaterThan(fences[0]!);
  expect(readdirSync(join(table.ground.layout.directory, "holds"))).toHaveLength(3);
});

it("an append that fails or changes nothing costs those of its slot nothing", async () => {
  const { table } = await world.open();
  const answers = await atOnce(
    { table },
    () => table.append(() => undefined),
    () => table.append(() => { throw new RangeError("mine alone"); }).catch((error: unknown) => error), // prettier-ignore
    () => table.append((state) => state),
  );
  expect(answers).toEqual([undefined, expect.any(RangeError), expect.objectContaining({ number: expect.any(Number) })]);
});
