// The bug bench: runs a mutant and tells whether the explorer catches it, by what, and how fast. It
// measures the tests, not the code.
import { explore, type Exploration, type Violation } from "./explorer/explore.ts";
import type { Mutant } from "./mutants/mutant.ts";

export interface BenchResult {
  readonly mutant: string;
  /** The promise that it breaks was broken. Breaking another one by accident does not count. */
  readonly caught: boolean;
  readonly states: number;
  readonly ms: number;
  readonly violation?: Violation;
}

/** A mutant that is not caught within so many states counts as missed. */
export const mutantStatesMax = 200_000;

export async function benchMutant(mutant: Mutant, options: { readonly shortenMs?: number } = {}): Promise<BenchResult> {
  const { shortenMs = 0 } = options;
  return judgeMutant(mutant, await explore(mutant.scenario, { shortenMs, statesMax: mutantStatesMax }));
}

export function judgeMutant({ name, breaks }: Mutant, { states, ms, violation }: Exploration): BenchResult {
  const caught = violation !== undefined && breaks.test(violation.message);
  return { mutant: name, caught, states, ms, ...(violation === undefined ? {} : { violation }) };
}
