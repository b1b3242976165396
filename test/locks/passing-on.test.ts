// Passing a hold on within a process: fast for its callers, fair to other processes.
import { afterEach, beforeEach, expect, it } from "vitest";
import { LocksWorld } from "../sites/path-locks.ts";

let world: LocksWorld;
beforeEach(async () => {
  world = await LocksWorld.make();
});
afterEach(() => world.end());

it("lets one in at a time, with fences that grow, and lets other processes in between", async () => {
  const all = [await world.open(), await world.open()];
  const entered: { readonly who: number; readonly fence: number }[] = [];
  let inside = 0;
  await Promise.all(
    all.flatMap((locks, who) =>
      Array.from({ length: 300 }, async () => {
        const hold = await locks.acquire("x", { timeoutMs: 60_000 });
        expect(++inside).toBe(1);
        entered.push({ who, fence: hold.fence });
        await hold.assertHeld();
        inside--;
        await hold.release();
      }),
    ),
  );
  expect(entered).toHaveLength(600);
  expect(entered.map(({ fence }) => fence)).toEqual([...entered].map(({ fence }) => fence).sort((a, b) => a - b));
  // Both wait from the beginning, so no run of one of them is longer than what it may pass on.
  let run = 0;
  let longest = 0;
  for (const [index, { who }] of entered.slice(0, 300).entries()) {
    run = index > 0 && entered[index - 1]?.who === who ? run + 1 : 1;
    longest = Math.max(longest, run);
  }
  expect(longest).toBeGreaterThan(1);
  expect(longest).toBeLessThanOrEqual(128);
});

it("is not done with a hold that somebody broke, nor with one that was changed", async () => {
  const [a, b] = [await world.open(), await world.open()];
  const first = await a.acquire("x");
  const second = a.acquire("x", { timeoutMs: 10_000 });
  await b.break("x");
  const between = await b.acquire("x");
  await first.release();
  await between.release();
  const held = await second;
  expect(held.fence).toBeGreaterThan(between.fence);
  const third = a.acquire("x", { timeoutMs: 10_000 });
  await held.upgrade("tree");
  await held.release();
  expect((await third).requests).toMatchObject([{ path: "x", mode: "exact" }]);
  expect(await b.tryAcquire("x/below")).not.toBe(undefined);
});
