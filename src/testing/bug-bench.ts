// The bug bench: runs a mutant, and reports whether the explorer catches it, by which violation and
// how fast. It measures the tests, not the code.
import { explore, type Exploration, type Violation } from "./explorer/explore.ts";
import type { Scenario } from "./explorer/scenario.ts";

/** A faulty variant of a mechanism, in the smallest scenario that shows the damage. */
export interface Mutant {
  /** The name of the mutant. */
  readonly name: string;
  /** Describes its fault. */
  readonly about: string;
  /** The scenario that catches it. */
  readonly scenario: Scenario;
  /** Matches the message of the violation that the explorer must find. */
  readonly breaks: RegExp;
}

/** The result of `benchMutant`. */
export interface BenchResult {
  /** The name of the mutant. */
  readonly mutant: string;
  /** True if the mutant broke the promise that it must break. Breaking another one by accident does not count. */
  readonly caught: boolean;
  /** How many states were explored. */
  readonly states: number;
  /** How long it took. */
  readonly ms: number;
  /** The violation that was found, if any. */
  readonly violation?: Violation;
}

/** A mutant that is not caught within this many states counts as missed. */
export const mutantStatesMax = 200_000;

/**
 * Runs a mutant in its scenario, and reports whether the explorer catches it within 200,000 states.
 * `shortenMs` (default 0) is the time to look for a shorter trace.
 */
export async function benchMutant(mutant: Mutant, options: { readonly shortenMs?: number } = {}): Promise<BenchResult> {
  const { shortenMs = 0 } = options;
  return judgeMutant(mutant, await explore(mutant.scenario, { shortenMs, statesMax: mutantStatesMax }));
}

export function judgeMutant({ name, breaks }: Mutant, { states, ms, violation }: Exploration): BenchResult {
  const caught = violation !== undefined && breaks.test(violation.message);
  return { mutant: name, caught, states, ms, ...(violation === undefined ? {} : { violation }) };
}
