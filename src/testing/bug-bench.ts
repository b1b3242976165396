// The bug bench: runs every known-wrong variant and tells whether the harness catches it, by what, and how fast. It measures the tests, not the code.
import { explore, type Exploration, type Violation } from "./explorer/explore.ts";
import { commitAnswerMutants } from "./mutants/commit-answers.ts";
import { eventConsumerMutants } from "./mutants/event-consumers.ts";
import { eventMutants } from "./mutants/events.ts";
import { forgetfulChainMutants } from "./mutants/forgetful-chains.ts";
import { gateMutants } from "./mutants/gate.ts";
import { livenessMutants } from "./mutants/liveness.ts";
import type { Mutant } from "./mutants/mutant.ts";
import { numberRaceMutants } from "./mutants/number-race.ts";
import { pathLockMutants } from "./mutants/path-locks.ts";
import { publishMutants } from "./mutants/publish.ts";
import { redoMutants } from "./mutants/redo.ts";
import { rollingChainMutants } from "./mutants/rolling-chain.ts";
import { seedPathLockMutants } from "./mutants/seed-path-locks.ts";
import { semaphoreMutants } from "./mutants/semaphore.ts";
import { sharedSyncMutants } from "./mutants/shared-sync.ts";
import { storeMutants } from "./mutants/store.ts";

export const mutants: readonly Mutant[] = [
  ...publishMutants,
  ...sharedSyncMutants,
  ...numberRaceMutants,
  ...forgetfulChainMutants,
  ...rollingChainMutants,
  ...livenessMutants,
  ...gateMutants,
  ...semaphoreMutants,
  ...pathLockMutants,
  ...commitAnswerMutants,
  ...redoMutants,
  ...seedPathLockMutants,
  ...eventMutants,
  ...eventConsumerMutants,
  ...storeMutants,
];

export interface BenchResult {
  readonly mutant: string;
  /** The promise that it breaks was broken. Breaking another one by accident does not count. */
  readonly caught: boolean;
  readonly states: number;
  readonly ms: number;
  readonly violation?: Violation;
}

/** A variant that is not caught within so many states counts as missed. */
export const mutantStatesMax = 200_000;

export async function benchMutant(mutant: Mutant, options: { readonly shortenMs?: number } = {}): Promise<BenchResult> {
  const { shortenMs = 0 } = options;
  return judgeMutant(mutant, await explore(mutant.scenario, { shortenMs, statesMax: mutantStatesMax }));
}

export function judgeMutant({ name, breaks }: Mutant, { states, ms, violation }: Exploration): BenchResult {
  const caught = violation !== undefined && breaks.test(violation.message);
  return { mutant: name, caught, states, ms, ...(violation === undefined ? {} : { violation }) };
}
