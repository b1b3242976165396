// How far a test run explores the scenarios of each size: always by states, never by seconds.
import type { ExploreOptions } from "./explorer/explore.ts";
import type { ScenarioSize } from "./explorer/scenario.ts";

/**
 * States, and states after a power cut. A scenario with more than its size allows is declared
 * wrongly.
 */
export const statesMaxOf: Readonly<Record<ScenarioSize, number>> = {
  small: 1_500,
  medium: 150_000,
  large: Infinity,
};

/** For `npm run test:deep`: it exhausts what is medium. */
export const deepBoundsOf: Readonly<Record<Exclude<ScenarioSize, "small">, ExploreOptions>> = {
  medium: { statesMax: statesMaxOf.medium },
  large: { statesMax: 2_000, preemptionsMax: 2 },
};
