// How far a test run explores the scenarios of each size: always by states, never by seconds.
import type { ExploreOptions } from "../src/testing/explorer/explore.ts";
import type { ScenarioSize } from "../src/testing/explorer/scenario.ts";

/**
 * Limits of states, and of states after a power cut. A scenario that exceeds those of its size
 * declares a wrong size.
 */
export const statesMaxOf: Readonly<Record<ScenarioSize, number>> = {
  small: 1_500,
  medium: 150_000,
  large: Infinity,
};

/** The limits of `npm run test:deep`, which exhausts medium scenarios. */
export const deepBoundsOf: Readonly<Record<Exclude<ScenarioSize, "small">, ExploreOptions>> = {
  medium: { statesMax: statesMaxOf.medium },
  large: { statesMax: 2_000, preemptionsMax: 2 },
};
