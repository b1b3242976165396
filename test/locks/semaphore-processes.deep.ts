// Semaphores between real processes, in long runs: killed, stopped, and all after one stale lock; and
// the proof that the tests would notice.
import { describe, expect, test } from "vitest";
import { canStop } from "../../harness/processes/child.ts";
import { torture } from "../../harness/torture/torture.ts";
import { race } from "./semaphore-race.ts";

const processes = 8;

describe("a counter that eight processes read, change and write under one semaphore", () => {
  test("loses no update, though holders are killed inside and others stopped anywhere", async () => {
    const result = await torture({ part: "semaphore", seconds: 10, processes, seed: 5 });
    expect(result.violations).toEqual([]);
    expect(result.appends).toBeGreaterThan(50);
    // A process that is killed inside leaves a lock, which the next one takes over.
    expect(result.killsInside).toBeGreaterThan(0);
    if (canStop) expect(result.stops).toBeGreaterThan(15);
  });

  test("loses some when a refresh empties the lock file first", async () => {
    const result = await torture({ part: "semaphore", seconds: 20, processes, seed: 6, sabotage: true });
    expect(result.violations.join("\n")).toMatch(/won twice|is lost/);
  });
});

describe("a planted stale lock that eight processes race for, with pauses in the middle of it", () => {
  test("has one holder in each of 300 rounds", async () => {
    expect(await race(300, "")).toEqual({ 1: 300 });
  });

  test("has two in some rounds when it is taken over by unlink", async () => {
    const counts = await race(100, "TakeoverByUnlink");
    expect(Object.keys(counts).some((holders) => Number(holders) > 1)).toBe(true);
  });
});
