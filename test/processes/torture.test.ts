// Real processes on one folder, killed and stopped at any moment: all parts at once, for as long as a person waits. Longer ones are in torture.deep.ts.
import { expect, test } from "vitest";
import { canStop } from "../../src/testing/processes/child.ts";
import { tortureParts } from "../../src/testing/torture/parts.ts";
import { torture } from "../../src/testing/torture/torture.ts";

const seconds = 25;
/** An even one and an odd one for each: the event log takes the mode of one machine, or that of shares. */
const crews = tortureParts.flatMap((part) => (part === "events" ? [2, 3] : [1]).map((seed) => ({ part, seed })));

// Ten times as long at most, and then each part may need its time to calm down and to be audited.
test("every part keeps its promises, whoever is killed or stopped", { timeout: 20 * seconds * 1000 }, async () => {
  const results = await Promise.all(
    crews.map(({ part, seed }) =>
      torture({
        part,
        seed,
        seconds,
        processes: 3,
        // As many in all as one part alone would get: a process that starts again needs the machine, too.
        blowsEveryMsMax: 100 * crews.length,
        atLeast: { appends: 20, kills: 3, killsInside: part === "chain" ? 0 : 1, stops: canStop ? 5 : 0 },
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
