// Keys that several real processes work on at the same time. Longer runs are in objects.deep.ts.
import { expect, test } from "vitest";
import { runAndJudge } from "./objects-run.ts";

test("what processes are told of a key could be told by one that does one thing at a time, though some are killed", async () => {
  const run = { processes: 3, keys: 4, operations: 10, changes: 0, seed: 1 };
  expect(await runAndJudge({ ...run, kills: 6 })).toBeGreaterThan(100);
});

test("the same while the versioning of the bucket is suspended and enabled", async () => {
  const run = { processes: 3, keys: 4, operations: 10, kills: 0, seed: 2 };
  expect(await runAndJudge({ ...run, changes: 6 })).toBe(120);
});
