// How far the scenarios of each size are explored by a test run: always by states, never by seconds.
import type { ExploreOptions } from "./explorer/explore.ts";
import type { ScenarioSize } from "./explorer/scenario.ts";

/** A scenario with more states than its size allows is declared wrongly. */
export const statesMaxOf: Readonly<Record<ScenarioSize, number>> = {
  small: 5_000,
  medium: 150_000,
  large: Infinity,
};

/** Where a scenario cannot be exhausted in the time that a person waits: most races show with two preemptions. */
export const quickBounds: ExploreOptions = { statesMax: statesMaxOf.small, preemptionsMax: 2 };
