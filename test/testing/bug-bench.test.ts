import { afterAll, describe, expect, it } from "vitest";
import { benchMutant, mutants, type BenchResult } from "../../src/testing/bug-bench.ts";

describe("the harness catches every known-wrong variant, by what it breaks", () => {
  const results: BenchResult[] = [];
  afterAll(() => {
    for (const { mutant, caught, states, ms } of results)
      console.log(
        `${caught ? "caught" : "MISSED"}  ${mutant.padEnd(52)} ${String(states).padStart(7)} states ${String(ms).padStart(6)} ms`,
      );
  });

  for (const mutant of mutants) {
    it(`${mutant.name}: ${mutant.about}`, async () => {
      const result = await benchMutant(mutant);
      results.push(result);
      expect(result.violation?.message ?? "nothing was found").toMatch(mutant.breaks);
    });
  }
});
