// The imports of every mutant file: the type, and the scenario that the mutant must fail.
import type { Scenario } from "../../src/testing/explorer/scenario.ts";

export type { Mutant } from "../../src/testing/bug-bench.ts";

/**
 * Finds a scenario by its name. A mutant runs in the same scenario as the real mechanism, which
 * passes it.
 */
export function scenarioNamed(scenarios: readonly Scenario[], name: string): Scenario {
  const found = scenarios.find((scenario) => scenario.name === name);
  if (found === undefined) throw new Error(`There is no scenario "${name}".`);
  return found;
}
