// The lock table, as several tasks of one process use it at the same time.
import { rename, rm } from "node:fs/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Disk } from "../../src/ports/disk.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { changedDisk } from "../durable/places.ts";
import { nfs } from "../durable/world.ts";
import { LocksWorld } from "./locks-world.ts";

let world: LocksWorld;
beforeEach(async () => {
  world = await LocksWorld.make();
});
afterEach(() => world.end());

it("drops what one task has condemned, though another task's append came in between", async () => {
  const hook: { before?: (call: number) => Promise<void> } = {};
  let calls = 0;
  const tamper = (ports: Ports): Ports => {
    const { disk } = ports;
    const link: Disk["link"] = async (from, to) => {
      await hook.before?.(++calls);
      await disk.link(from, to);
    };
    return { ...ports, disk: new Proxy(disk, { get: (_, name) => (name === "link" ? link : bound(disk, name)) }) };
  };
  const [holder, { table }] = [await world.open(), await world.open({ tamper })];
  const hold = await holder.acquire("x");
  const { requests } = (await table.read()).state;
  const secondBegun = signalled();
  const firstDone = signalled();
  // The first append wins the number that both try for, and is over before the second one hears that it has lost.
  hook.before = async (call) => {
    if (call === 1) await secondBegun.promise;
    if (call !== 2) return;
    secondBegun.resolve();
    await firstDone.promise;
  };
  const first = table.append((list) => list).then(() => firstDone.resolve());
  await table.drop(requests);
  await first;
  expect((await table.read()).state.requests).toEqual([]);
  await expect(hold.assertHeld()).rejects.toMatchObject({ code: "LOCK_LOST" });
});

// One that had been taken for dead while it slept took every hold for released, and its next append dropped those of the living.
it("drops nobody who holds when its own directory was swept, and goes on with another life", async () => {
  const tamper = (ports: Ports): Ports => ({ ...ports, disk: changedDisk(ports.disk, () => ({ volume: nfs })) });
  const [holder, sleeper] = [await world.open({ tamper }), await world.open({ tamper })];
  const hold = await holder.acquire("x");
  const { ground } = sleeper.table;
  const life = await ground.life();
  await rename(ground.layout.record(life.holder.id), ground.layout.deathRecord(life.holder.id));
  await rm(life.temp, { recursive: true });
  await expect(sleeper.tryAcquire("x")).rejects.toMatchObject({ code: "LOCK_LOST" });
  expect(life.signal.aborted).toBe(true);
  expect(await sleeper.tryAcquire("x")).toBeUndefined();
  await (await sleeper.acquire("y")).release();
  await hold.assertHeld();
});

function bound(disk: Disk, name: string | symbol): unknown {
  const value = Reflect.get(disk, name) as unknown;
  return typeof value === "function" ? (value.bind(disk) as unknown) : value;
}

function signalled(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}
