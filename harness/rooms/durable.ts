// Scenarios and mutants of src/durable. A new file of either is one line here.
import { deltaMutants } from "../mutants/durable/deltas.ts";
import { forgetfulChainMutants } from "../mutants/durable/forgetful-chains.ts";
import { gateMutants } from "../mutants/durable/gate.ts";
import { livenessMutants } from "../mutants/durable/liveness.ts";
import { numberRaceMutants } from "../mutants/durable/number-race.ts";
import { publishMutants } from "../mutants/durable/publish.ts";
import { rollingChainMutants } from "../mutants/durable/rolling-chain.ts";
import { sharedSyncMutants } from "../mutants/durable/shared-sync.ts";
import { deltaScenarios } from "../scenarios/durable/deltas.ts";
import { chainScenarios } from "../scenarios/durable/chain.ts";
import { gateScenarios } from "../scenarios/durable/gate.ts";
import { groundScenarios } from "../scenarios/durable/ground.ts";
import { lateRecordScenarios } from "../scenarios/durable/late-record.ts";
import { livenessScenarios } from "../scenarios/durable/liveness.ts";
import { numberRaceScenarios } from "../scenarios/durable/number-race.ts";
import { publishScenarios } from "../scenarios/durable/publish.ts";
import { rollingChainScenarios } from "../scenarios/durable/rolling-chain.ts";
import { sharedSyncScenarios } from "../scenarios/durable/shared-sync.ts";
import { twoBootsScenarios } from "../scenarios/durable/two-boots.ts";
import type { ExploredRoom } from "./room.ts";

export const durableRoom: ExploredRoom = {
  name: "durable",
  scenarios: [
    publishScenarios,
    sharedSyncScenarios,
    numberRaceScenarios,
    chainScenarios,
    rollingChainScenarios,
    deltaScenarios,
    lateRecordScenarios,
    twoBootsScenarios,
    livenessScenarios,
    groundScenarios,
    gateScenarios,
  ],
  mutants: [
    publishMutants,
    sharedSyncMutants,
    numberRaceMutants,
    forgetfulChainMutants,
    rollingChainMutants,
    deltaMutants,
    livenessMutants,
    gateMutants,
  ],
};
