// All scenarios of the mechanisms, and which of them are small enough for every test run.
import type { Scenario } from "../explorer/scenario.ts";
import { brokenHolderScenarios } from "./broken-holders.ts";
import { chainScenarios } from "./chain.ts";
import { changingHandsScenarios } from "./changing-hands.ts";
import { eventConsumerScenarios } from "./event-consumers.ts";
import { eventScenarios } from "./events.ts";
import { gateScenarios } from "./gate.ts";
import { groundScenarios } from "./ground.ts";
import { groupCommitScenarios } from "./group-commit.ts";
import { livenessScenarios } from "./liveness.ts";
import { pathLockScenarios } from "./path-locks.ts";
import { publishScenarios } from "./publish.ts";
import { redoScenarios } from "./redo.ts";
import { rollingChainScenarios } from "./rolling-chain.ts";
import { semaphoreScenarios } from "./semaphore.ts";
import { staleRedoScenarios } from "./stale-redo.ts";
import { twoBootsScenarios } from "./two-boots.ts";

/** Explored by `npm run explore` only: minutes each. */
const large: ReadonlySet<string> = new Set([
  "chain: two sleepers and a collector",
  "chain: three sleepers and a collector",
  "chain: three machines with old caches",
  "locks: upgrade against a waiter, with hints",
  "locks: exact against exact, rolling and collected",
  "locks: tree against tree, rolling and collected",
  "locks: refresh against expiry, rolling and collected",
  "locks: two upgrades against each other, rolling and collected",
  "redo: a late committer, rolling and collection",
  "redo: three that break and count",
  "events: a writer that is killed, and a reader",
  "events: a writer that was cut off, and a reader",
  "events: two machines, no gate, late writes",
  "events: two machines, no gate, one comes again at once",
  "events: two machines, a kill, a reader",
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
    ...twoBootsScenarios(),
    ...livenessScenarios(),
    ...groundScenarios(),
    ...gateScenarios(),
    ...pathLockScenarios(),
    ...changingHandsScenarios(),
    ...redoScenarios(),
    ...staleRedoScenarios(),
    ...brokenHolderScenarios(),
    ...groupCommitScenarios(),
    ...semaphoreScenarios(),
    ...eventScenarios(),
    ...eventConsumerScenarios(),
  ];
  return scenarios.map((scenario) => ({ scenario, size: large.has(scenario.name) ? "large" : "small" }));
}
