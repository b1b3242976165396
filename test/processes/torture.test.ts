// Real processes on one folder, killed and stopped at any moment: the parts that use all others, at
// once and in a short run. Longer runs of every part are in torture.deep.ts.
import { expect, test } from "vitest";
import { canStop } from "../../harness/processes/child.ts";
import { getTortureTask } from "../../harness/torture/parts.ts";
import { torture } from "../../harness/torture/torture.ts";

const seconds = 3;
const parts: readonly string[] = ["events", "handoff", "objects", "files"];
const crews = parts.flatMap((part) => {
  const { shortSeeds = [1], tellsInside = true } = getTortureTask(part);
  return shortSeeds.map((seed) => ({ part, seed, tellsInside }));
});

// A run goes on until enough has happened, for thirty times as long at most; then each part may need
// its time to calm down and to be audited.
test("they keep their promises while their processes are killed and stopped", { timeout: 600_000 }, async () => {
  const results = await Promise.all(
    crews.map(({ part, seed, tellsInside }) =>
      torture({
        part,
        seed,
        seconds,
        processes: 3,
        // As many blows in all as one part alone would get: a process that starts again needs the
        // machine, too.
        blowsEveryMsMax: 100 * crews.length,
        atLeast: { appends: 20, kills: 3, killsInside: tellsInside ? 1 : 0, stops: canStop ? 5 : 0 },
      }),
    ),
  );
  expect(results.flatMap(({ part, seed, violations }) => violations.map((what) => ({ part, seed, what })))).toEqual([]);
  for (const { appends, kills, stops } of results) {
    expect(appends).toBeGreaterThanOrEqual(20);
    expect(kills).toBeGreaterThanOrEqual(3);
    if (canStop) expect(stops).toBeGreaterThanOrEqual(5);
  }
});
