// How far a test run explores the scenarios of each size: always by states, never by seconds.
import type { ExploreOptions } from "./explorer/explore.ts";
import type { ScenarioSize } from "./explorer/scenario.ts";

/**
 * States, and states after a power cut. A scenario with more than its size allows is declared
 * wrongly.
 */
export const statesMaxOf: Readonly<Record<ScenarioSize, number>> = {
  small: 5_000,
  medium: 150_000,
  large: Infinity,
};

/**
 * For `npm test`, where a scenario takes too long to exhaust: most races show with two preemptions.
 */
export const quickBoundsOf: Readonly<Record<Exclude<ScenarioSize, "small">, ExploreOptions>> = {
  // `npm run test:deep` exhausts it.
  medium: { statesMax: 2_000, preemptionsMax: 2 },
  large: { statesMax: 5_000, preemptionsMax: 2 },
};
