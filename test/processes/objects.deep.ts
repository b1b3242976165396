// Many keys that eight real processes work on at the same time.
import { expect, test } from "vitest";
import { runAndJudge } from "./objects-run.ts";

const timeout = 600_000;

test(
  "what processes are told of a key could be told by one that does one thing at a time, though some are killed",
  { timeout },
  async () => {
    const run = { processes: 8, keys: 40, operations: 6, changes: 0, seed: 3 };
    expect(await runAndJudge({ ...run, kills: 40 })).toBeGreaterThan(1500);
  },
);

test("the same while the versioning of the bucket is suspended and enabled", { timeout }, async () => {
  const run = { processes: 8, keys: 40, operations: 6, kills: 0, seed: 4 };
  expect(await runAndJudge({ ...run, changes: 60 })).toBe(8 * 40 * 6);
});
