// Real processes on one folder, killed and stopped at any moment, each part by itself; and the
// proof that the audit would notice.
import { describe, expect, test } from "vitest";
import { canStop } from "../../harness/processes/child.ts";
import { getTortureTask, tortureParts } from "../../harness/torture/parts.ts";
import type { TortureFigures } from "../../harness/torture/task.ts";
import { torture } from "../../harness/torture/torture.ts";

const processes = 8;
/** A run goes on until enough has happened, and each wait in it has its own limit. */
const timeout = 900_000;
/** A sabotage ends at the first violation; this is what it may take at most. */
const sabotageSecondsMax = 300;
const lostOrDoubled = /won twice|is lost|won number \d+ after|acknowledged twice/;

describe.each(tortureParts)("%s", (part) => {
  const { promise, longRuns, sabotage } = getTortureTask(part);

  for (const { about, seed, seconds, atLeast, epochsMin = 0 } of longRuns)
    test(`${promise}${about === undefined ? "" : `, ${about}`}`, { timeout }, async () => {
      const { stops = 0, livesOver = 0, ...others } = atLeast;
      const least = { ...others, ...(canStop ? { stops, livesOver } : {}) };
      const result = await torture({ part, seed, seconds, processes, atLeast: least });
      expect(result.violations).toEqual([]);
      for (const [name, figure] of Object.entries(least))
        expect([name, result[name as keyof TortureFigures]]).toSatisfy(([, happened]) => happened >= figure);
      expect(result.epochs).toBeGreaterThanOrEqual(epochsMin);
    });

  if (sabotage === undefined) return;
  const { about, seed, breaks = lostOrDoubled, needsStops = false } = sabotage;
  test.skipIf(needsStops && !canStop)(`a variant that ${about} is found out`, { timeout }, async () => {
    const result = await torture({ part, seconds: sabotageSecondsMax, processes, seed, sabotage: true });
    expect(result.violations.join("\n")).toMatch(breaks);
  });
});
