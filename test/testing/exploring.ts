// Explores scenarios as tests, in compiled threads with one queue, and prints what that took.
import { afterAll, describe, expect, it } from "vitest";
import type { Exploration, ExploreOptions } from "../../src/testing/explorer/explore.ts";
import { ExplorerPool } from "../../harness/explore/pool.ts";
import { allScenarios, type ListedScenario } from "../../harness/rooms/index.ts";

export interface ExploringOptions {
  readonly isWanted: (listed: ListedScenario) => boolean;
  readonly bounds: ExploreOptions;
  /** What else must hold of what was explored. */
  readonly expectOf: (exploration: Exploration) => void;
}

/** Two cores are the smallest machine that the suite must pass on. */
export const poolSize = 2;

/** One for all that a file explores: each thread loads every scenario. */
const pool = new ExplorerPool(poolSize);
let users = 0;

/**
 * No test of it has a time-out: what is bounded by states ends by itself, however slow the machine
 * is.
 */
export function exploreListed({ isWanted, bounds, expectOf }: ExploringOptions): void {
  const listed = allScenarios().filter(isWanted);
  const explored: Exploration[] = [];
  users++;
  afterAll(async () => {
    console.log(formatFigures(explored));
    users--;
    if (users === 0) await pool.close();
  });
  for (const room of new Set(listed.map((each) => each.room)))
    describe.concurrent(room, () => {
      for (const { scenario } of listed.filter((each) => each.room === room))
        it(scenario.name, { timeout: 0 }, async () => {
          const exploration = await pool.explore({ kind: "scenario", name: scenario.name, options: bounds });
          explored.push(exploration);
          const { violation } = exploration;
          expect(violation === undefined ? "" : `${violation.message}\n${violation.table}`).toBe("");
          expectOf(exploration);
        });
    });
}

function formatFigures(explored: readonly Exploration[]): string {
  const total = (pick: (each: Exploration) => number): number => explored.reduce((sum, each) => sum + pick(each), 0);
  const rows = explored.map(({ scenario, exhausted, states, schedules, crashStates, ms }) => [
    `${exhausted ? "exhausted" : "bounded  "}  ${scenario}`,
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
  const table = [["explored", "states", "schedules", "crash states", "ms"], ...rows];
  return table
    .map(([name, ...figures]) =>
      [String(name).padEnd(72), ...figures.map((figure) => String(figure).padStart(12))].join(" "),
    )
    .join("\n");
}
