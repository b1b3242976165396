// All scenarios, by the room whose promises they are about. A new file of scenarios is one line here.
import type { Scenario, ScenarioSize } from "../explorer/scenario.ts";
import { brokenHolderScenarios } from "./locks/broken-holders.ts";
import { chainScenarios } from "./durable/chain.ts";
import { changingHandsScenarios } from "./locks/changing-hands.ts";
import { eventConsumerScenarios } from "./events/consumers.ts";
import { eventScenarios } from "./events/events.ts";
import { gateScenarios } from "./durable/gate.ts";
import { groundScenarios } from "./durable/ground.ts";
import { groupCommitScenarios } from "./durable/group-commit.ts";
import { livenessScenarios } from "./durable/liveness.ts";
import { handoffScenarios } from "./handoff/handoff.ts";
import { pathLockScenarios } from "./locks/path-locks.ts";
import { publishScenarios } from "./durable/publish.ts";
import { redoScenarios } from "./locks/redo.ts";
import { rollingChainScenarios } from "./durable/rolling-chain.ts";
import { semaphoreScenarios } from "./locks/semaphore.ts";
import { staleRedoScenarios } from "./locks/stale-redo.ts";
import { twoBootsScenarios } from "./durable/two-boots.ts";
import { unsyncedEventScenarios } from "./events/unsynced-events.ts";

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
  handoff: [handoffScenarios],
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
