// How long a caller waits over all the places where it has to: its own process's line, and the table.
import { afterEach, beforeEach, expect, it } from "vitest";
import { LocksWorld } from "../sites/path-locks.ts";
import { keep } from "./keep.ts";

let world: LocksWorld;
beforeEach(async () => {
  world = await LocksWorld.make();
});
afterEach(() => world.end());

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
