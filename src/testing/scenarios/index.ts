// All scenarios of the mechanisms, and which of them are small enough for every test run.
import type { Scenario } from "../explorer/scenario.ts";
import { chainScenarios } from "./chain.ts";
import { gateScenarios } from "./gate.ts";
import { groundScenarios } from "./ground.ts";
import { groupCommitScenarios } from "./group-commit.ts";
import { livenessScenarios } from "./liveness.ts";
import { publishScenarios } from "./publish.ts";
import { rollingChainScenarios } from "./rolling-chain.ts";

/** Explored by `npm run explore` only: minutes each. */
const large: ReadonlySet<string> = new Set([
  "chain: two sleepers and a collector",
  "chain: three sleepers and a collector",
  "chain: three machines with old caches",
]);

export interface ListedScenario {
  readonly scenario: Scenario;
  readonly size: "small" | "large";
}

export function allScenarios(): ListedScenario[] {
  const scenarios = [
    ...publishScenarios(),
    ...chainScenarios(),
    ...rollingChainScenarios(),
    ...livenessScenarios(),
    ...groundScenarios(),
    ...gateScenarios(),
    ...groupCommitScenarios(),
  ];
  return scenarios.map((scenario) => ({ scenario, size: large.has(scenario.name) ? "large" : "small" }));
}
