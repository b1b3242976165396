// The queue of a process: a hold is passed on fast to its callers and fairly to other processes, and a
// caller waits no longer than it asked for.
import { afterEach, beforeEach, expect, it } from "vitest";
import { LocksWorld } from "../sites/path-locks.ts";
import { keep } from "./keep.ts";

let world: LocksWorld;
beforeEach(async () => {
  world = await LocksWorld.make();
});
afterEach(() => world.end());

it("passing a hold on admits one caller at a time, with fences that grow, and other processes in between", async () => {
  const all = [await world.open(), await world.open()];
  const entered: { readonly who: number; readonly fence: number }[] = [];
  let inside = 0;
  await Promise.all(
    all.flatMap((locks, who) =>
      Array.from({ length: 300 }, async () => {
        // On a slow share 600 turns, each with a question to its server, take minutes.
        const hold = await locks.acquire("x", { timeoutMs: 200_000 });
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
  // Both wait from the beginning, so neither is admitted more often in a row than it may pass on.
  let run = 0;
  let longest = 0;
  for (const [index, { who }] of entered.slice(0, 300).entries()) {
    run = index > 0 && entered[index - 1]?.who === who ? run + 1 : 1;
    longest = Math.max(longest, run);
  }
  expect(longest).toBeGreaterThan(1);
  expect(longest).toBeLessThanOrEqual(128);
});

it("a hold that was broken or changed is not passed on", async () => {
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

it("a caller that waited behind another one of its process is told how long it waited in all", async () => {
  const [a, b] = [await world.open(), await world.open()];
  await keep(a.acquire("x"));
  const begin = performance.now();
  const first = b.acquire("x", { timeoutMs: 250 }).catch((error: unknown) => error);
  const second = b.acquire("x", { timeoutMs: 400 }).catch((error: unknown) => error);
  expect(await first).toMatchObject({ code: "LOCK_TIMEOUT", waitedMs: 250 });
  expect(await second).toMatchObject({ code: "LOCK_TIMEOUT", waitedMs: 400, blockedBy: [{ path: "x" }] });
  expect(performance.now() - begin).toBeGreaterThanOrEqual(395);
  expect(performance.now() - begin).toBeLessThan(5000);
});
