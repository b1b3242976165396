// What a mutant is: a known-wrong variant of a mechanism, in the smallest scenario that shows what it breaks.
import type { Scenario } from "../explorer/scenario.ts";

export interface Mutant {
  readonly name: string;
  /** What is wrong with it. */
  readonly about: string;
  readonly scenario: Scenario;
  /** What the harness must find. */
  readonly breaks: RegExp;
}

/** The scenario of that name among those that a mechanism has: a mutant runs in the very scenario that the real one passes. */
export function scenarioNamed(scenarios: readonly Scenario[], name: string): Scenario {
  const found = scenarios.find((scenario) => scenario.name === name);
  if (found === undefined) throw new Error(`There is no scenario "${name}".`);
  return found;
}
