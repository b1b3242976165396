// The bug bench as tests: each known-wrong variant must be caught, in compiled threads with one queue.
import { afterAll, describe, expect, it } from "vitest";
import { judgeMutant, mutantStatesMax, type BenchResult } from "../../src/testing/bug-bench.ts";
import { ExplorerPool } from "../../harness/explore/pool.ts";
import { mutants } from "../../harness/rooms/index.ts";
import { poolSize } from "./exploring.ts";

// No test has a time-out: what is bounded by states ends by itself.
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
