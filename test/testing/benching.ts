// The bug bench as tests: each known-wrong variant must be caught, in compiled threads with one queue.
import { afterAll, describe, expect, it } from "vitest";
import { judgeMutant, mutantStatesMax, type BenchResult, type Mutant } from "../../src/testing/bug-bench.ts";
import { ExplorerPool } from "../../harness/explore/pool.ts";
import { poolSize } from "./exploring.ts";

/** Caught after more than 1,000 states: they take half of the time of all. */
export const lateMutants: readonly string[] = [
  "events: a dead writer's line is adopted where it stands (E4)",
  "events: going on in the segment of a writer that may be at work",
  "tickets given back before staging is gone",
  "own directory swept, another's file taken for gone",
  "checkpoint without a check of the fence",
  "hold passed on without a look",
  "hold given up while a commit is under way",
  "late holder that continues (V1)",
  "reader that walks on from a cached number (C2)",
  "collector that takes a stale handle for a removed file",
  "semaphore: release repeated without a look",
  "semaphore: release for another without the guard",
  "documents applied without a look at their changes",
  "index whose record is deleted first",
  "sidecars whose version is not marked as started",
  "verification that does not look again (verify: a small version is removed)",
  "late committer that is told of a success",
  "redo: one answer for all callers that share a slot",
];

/** No test of it has a time-out: what is bounded by states ends by itself. */
export function describeBench(mutants: readonly Mutant[]): void {
  describe.concurrent("the harness catches every known-wrong variant, by what it breaks", () => {
    const pool = new ExplorerPool(poolSize);
    const results: BenchResult[] = [];
    afterAll(async () => {
      await pool.close();
      for (const { mutant, caught, states, ms } of results)
        console.log(
          `${caught ? "caught" : "MISSED"}  ${mutant.padEnd(52)} ${String(states).padStart(7)} states ${String(ms).padStart(6)} ms`,
        );
    });

    const options = { shortenMs: 0, statesMax: mutantStatesMax };
    for (const mutant of mutants) {
      it(`${mutant.name}: ${mutant.about}`, { timeout: 0 }, async () => {
        const result = judgeMutant(mutant, await pool.explore({ kind: "mutant", name: mutant.name, options }));
        results.push(result);
        expect(result.violation?.message ?? "nothing was found").toMatch(mutant.breaks);
      });
    }
  });
}
