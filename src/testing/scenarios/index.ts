// All scenarios, by the room whose promises they are about. A new file of scenarios is one line here.
import type { Scenario, ScenarioSize } from "../explorer/scenario.ts";
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
import { unsyncedEventScenarios } from "./unsynced-events.ts";

const scenariosByRoom: Readonly<Record<string, readonly (() => readonly Scenario[])[]>> = {
  durable: [
    publishScenarios,
    chainScenarios,
    rollingChainScenarios,
    twoBootsScenarios,
    livenessScenarios,
    groundScenarios,
    gateScenarios,
    groupCommitScenarios,
  ],
  locks: [
    semaphoreScenarios,
    pathLockScenarios,
    changingHandsScenarios,
    redoScenarios,
    staleRedoScenarios,
    brokenHolderScenarios,
  ],
  events: [eventScenarios, unsyncedEventScenarios, eventConsumerScenarios],
};

export interface ListedScenario {
  readonly scenario: Scenario;
  readonly room: string;
  readonly size: ScenarioSize;
}

export function allScenarios(): ListedScenario[] {
  return Object.entries(scenariosByRoom).flatMap(([room, files]) =>
    files
      .flatMap((scenariosOf) => scenariosOf())
      .map((scenario) => ({ scenario, room, size: scenario.size ?? "small" })),
  );
}
