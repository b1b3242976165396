// An upgrade and its announcement in the table, which others take for a reason not to wait.
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { TablePathLocks } from "../../src/locks/path/service.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import { changedDisk } from "../sites/disks.ts";
import { until } from "../waiting.ts";
import { LocksWorld } from "../sites/path-locks.ts";

let world: LocksWorld;
let a: TablePathLocks;
let b: TablePathLocks;
/** Whether `a` can append to the table. */
let isBroken: boolean;

beforeEach(async () => {
  world = await LocksWorld.make();
  isBroken = false;
  a = await world.open({
    tamper: (ports) => ({
      ...ports,
      disk: changedDisk(ports.disk, (real) => ({
        link: async (from, to) => {
          if (isBroken && to.includes("/table/")) throw diskError("EIO", "link", to);
          await real.link(from, to);
        },
      })),
    }),
  });
  b = await world.open();
});
afterEach(() => world.end());

async function isWishing(): Promise<boolean> {
  return (await b.table.read()).state.requests.some(({ wants }) => wants !== undefined);
}

it("an upgrade that gave up is told so at once, and its announcement is retracted later if that fails now", async () => {
  const [hold, reader] = [await a.acquire("x", { shared: true }), await b.acquire("x", { shared: true })];
  const upgrade = hold.upgrade({ shared: false }, { timeoutMs: 400 }).catch((error: unknown) => error);
  while (!(await isWishing())) await sleep(5);
  isBroken = true;
  expect(await upgrade).toMatchObject({ code: "LOCK_TIMEOUT" });
  isBroken = false;
  expect(await isWishing()).toBe(true);
  while (await isWishing()) await sleep(20);
  const waiting = reader.upgrade({ shared: false }, { timeoutMs: 10_000 });
  await hold.release();
  await waiting;
  await reader.release();
});

it("an upgrade that succeeded is not undone by later ones", async () => {
  const [hold, reader] = [await a.acquire("x", { shared: true }), await b.acquire("x", { shared: true })];
  let appends = 0;
  const { table } = a;
  const append = table.append.bind(table);
  table.append = async (...args) => {
    const entry = await append(...args);
    if (entry?.state.requests.every(({ claims }) => claims.every(({ shared }) => !shared))) {
      appends++;
      isBroken = true;
    }
    return entry;
  };
  const upgrade = hold.upgrade({ shared: false }, { timeoutMs: 10_000 });
  while (!(await isWishing())) await sleep(5);
  await reader.release();
  await upgrade;
  expect(appends).toBe(1);
  isBroken = false;
  expect(await isWishing()).toBe(false);
  expect(await b.tryAcquire("x", { shared: true })).toBe(undefined);
  await hold.release();
});

it("an upgrade that ended with its hold leaves no announcement to the next caller", async () => {
  const timeless = await world.open({
    tamper: (ports) => ({ ...ports, clock: { ...ports.clock, monotonicMs: () => 0 } }),
  });
  const reader = await b.acquire("x/y", { shared: true });
  const hold = await timeless.acquire("x");
  const next = timeless.acquire("x", { timeoutMs: 10_000 });
  await until(() => world.waiting > 0);
  const upgrade = hold.upgrade("tree", { timeoutMs: 10_000 }).catch((error: unknown) => error);
  while (!(await isWishing())) await sleep(5);
  await hold.release();
  const second = await next;
  expect(await isWishing()).toBe(false);
  expect(await upgrade).toMatchObject({ code: "LOCK_LOST" });
  await second.release();
  await reader.release();
});
