import { describe, expect, it } from "vitest";
import { explore } from "../../src/testing/explorer/explore.ts";
import type { Scenario } from "../../src/testing/explorer/scenario.ts";
import { SeedPathLocks, soundSteps } from "../../harness/mutants/locks/seed-path-locks.ts";
import { seedLockScenarios } from "../../harness/scenarios/locks/seed-locks.ts";

/** Explores it to the end; tells which facts there were in any schedule. */
async function factsOf(scenario: Scenario): Promise<Set<string>> {
  const seen = new Set<string>();
  const result = await explore({
    ...scenario,
    check: (facts) => {
      for (const { actor, what } of facts) seen.add(`${actor} ${what}`);
      scenario.check?.(facts);
    },
  });
  expect(result.violation === undefined ? "" : `${result.violation.message}\n${result.violation.table}`).toBe("");
  expect(result.exhausted).toBe(true);
  return seen;
}

describe("where a mutant breaks a promise, a sound variant keeps it", () => {
  for (const scenario of seedLockScenarios((context) => new SeedPathLocks(context, soundSteps)))
    it(scenario.name, { timeout: 0 }, async () => {
      const seen = await factsOf(scenario);
      // A protocol that lets no process in would be sound too.
      expect([...seen].filter((fact) => fact.endsWith(" enter"))).not.toEqual([]);
    });
});
