// The lock table: several tasks of one process at the same time, disks that fail, and records that somebody has made up.
import { afterEach, beforeEach, expect, it } from "vitest";
import { diskError } from "../../src/ports/disk-error.ts";
import { LocksWorld, withDisk } from "./locks-world.ts";

let world: LocksWorld;
beforeEach(async () => {
  world = await LocksWorld.make();
});
afterEach(() => world.end());

it("drops what one task has condemned, though another task's append came in between", async () => {
  const hook: { before?: (call: number) => Promise<void> } = {};
  let calls = 0;
  const tamper = withDisk((disk) => ({
    link: async (from, to) => {
      await hook.before?.(++calls);
      await disk.link(from, to);
    },
  }));
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

it("gives a lock that was won, though tidying up after it fails", async () => {
  let fails = false;
  const tamper = withDisk((disk) => ({
    canOpen: async (path) => {
      if (fails && path.includes("/holds/")) throw diskError("EIO", "open", path);
      return await disk.canOpen(path);
    },
  }));
  const [other, locks] = [await world.open(), await world.open({ tamper })];
  for (let count = 0; count < 31; count++) await other.acquire(`f${count}`);
  fails = true;
  const hold = await locks.acquire("x");
  fails = false;
  await hold.release();
  await (await other.acquire("x")).release();
});

function signalled(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}
