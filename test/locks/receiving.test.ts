// Receiving a transferred hold: whatever fails on the way, it is held or free, and its locks are
// what they were.
import { afterEach, beforeEach, expect, it } from "vitest";
import type { TablePathLocks } from "../../src/locks/path/service.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { changedDisk } from "../sites/disks.ts";
import { until } from "../waiting.ts";
import { LocksWorld } from "../sites/path-locks.ts";

let world: LocksWorld;
let giver: TablePathLocks;
let third: TablePathLocks;

beforeEach(async () => {
  world = await LocksWorld.make();
  [giver, third] = [await world.open(), await world.open()];
});
afterEach(() => world.end());

async function openWith(change: (disk: Disk) => Partial<Disk>): Promise<TablePathLocks> {
  return await world.open({ tamper: (ports) => ({ ...ports, disk: changedDisk(ports.disk, change) }) });
}

it("a received hold is held, also when the file of its offer cannot be removed", async () => {
  const taker = await openWith((real) => ({
    unlink: async (path) => {
      if (path.endsWith(".transfer")) throw diskError("EIO", "unlink", path);
      await real.unlink(path);
    },
  }));
  const received = await taker.receive(await (await giver.acquire("x")).transfer());
  await received.assertHeld();
  await received.release();
  await (await third.acquire("x")).release();
});

for (const failures of [0, 1])
  it(`a hold that was perhaps received is given back, though ${failures} tries to do so fail`, async () => {
    const lost = { looks: 0, links: 0 };
    const taker = await openWith((real) => ({
      link: async (from, to) => {
        if (lost.looks === 0 && lost.links > 0 && to.includes("/table/")) {
          lost.links--;
          throw diskError("EIO", "link", to);
        }
        await real.link(from, to);
      },
      // A slot that was linked counts if its epoch is open: here that answer is lost.
      canOpen: async (path) => {
        if (lost.looks === 0 || !path.endsWith("/open")) return await real.canOpen(path);
        lost.looks--;
        throw diskError("EIO", "open", path);
      },
    }));
    const token = await (await giver.acquire("x")).transfer();
    const { table } = taker;
    const append = table.append.bind(table);
    table.append = async (...args) => {
      table.append = append;
      Object.assign(lost, { looks: 1, links: failures });
      return await append(...args);
    };
    await expect(taker.receive(token)).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect(lost).toEqual({ looks: 0, links: 0 });
    await (await third.acquire("x", { timeoutMs: 10_000 })).release();
  });

it("the fence of a hold does not fall, however often it is transferred", async () => {
  const timeless = await world.open({
    tamper: (ports) => ({ ...ports, clock: { ...ports.clock, monotonicMs: () => 0 } }),
  });
  const first = await timeless.acquire("x");
  const waiting = timeless.acquire("x", { timeoutMs: 10_000 });
  await until(() => world.waiting > 0);
  await first.release();
  const passed = await waiting;
  expect(passed.fence).toBe(first.fence + 1);
  const received = await giver.receive(await passed.transfer());
  const again = await third.receive(await received.transfer());
  expect([received.fence, again.fence]).toEqual([passed.fence, passed.fence]);
  await again.release();
});

it("a caller that changes the paths that a hold shows changes no lock", async () => {
  const received = await third.receive(await (await giver.acquire("x")).transfer());
  Object.assign(received.requests[0]!, { path: "elsewhere", shared: true });
  await (await third.acquire("other")).release();
  expect(received.requests).toEqual([{ path: "x", mode: "exact", shared: false }]);
  expect(await giver.tryAcquire("x")).toBe(undefined);
  await received.release();
});

it("a hold that is received while the locks are being closed is given back", async () => {
  const taker = await world.open();
  const token = await (await giver.acquire("x")).transfer();
  const receiving = taker.receive(token).catch((error: unknown) => error);
  await taker.close();
  expect(await receiving).toMatchObject({ code: "CLOSED" });
});
