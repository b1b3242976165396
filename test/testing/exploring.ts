// Explores scenarios to exhaustion as tests, and prints what that took.
import { afterAll, describe, expect, it } from "vitest";
import { explore, type Exploration } from "../../src/testing/explorer/explore.ts";
import { allScenarios } from "../../src/testing/scenarios/index.ts";

/** In several files, so that they share the machine's cores. */
export function exploreAll(isWanted: (name: string) => boolean): void {
  describe("every schedule of a small scenario keeps every promise", () => {
    const explored: Exploration[] = [];
    afterAll(() => console.log(formatFigures(explored)));

    for (const { scenario, size } of allScenarios()) {
      if (size === "large" || !isWanted(scenario.name)) continue;
      it(scenario.name, { timeout: 300_000 }, async () => {
        const result = await explore(scenario);
        explored.push(result);
        expect(result.violation === undefined ? "" : `${result.violation.message}\n${result.violation.table}`).toBe("");
        expect(result.exhausted).toBe(true);
      });
    }
  });
}

function formatFigures(explored: readonly Exploration[]): string {
  const total = (pick: (each: Exploration) => number): number => explored.reduce((sum, each) => sum + pick(each), 0);
  const rows = explored.map(({ scenario, states, schedules, crashStates, ms }) => [
    scenario,
    states,
    schedules,
    crashStates,
    ms,
  ]);
  rows.push([
    "all",
    total((e) => e.states),
    total((e) => e.schedules),
    total((e) => e.crashStates),
    total((e) => e.ms),
  ]);
  const table = [["explored to exhaustion", "states", "schedules", "crash states", "ms"], ...rows];
  return table
    .map(([name, ...figures]) =>
      [String(name).padEnd(58), ...figures.map((each) => String(each).padStart(13))].join(""),
    )
    .join("\n");
}
