// Scenarios and mutants of src/handoff. A new file of either is one line here.
import { handoffAdoptMutants } from "../mutants/handoff/adopting.ts";
import { handoffClaimMutants } from "../mutants/handoff/claims.ts";
import { handoffLaneMutants } from "../mutants/handoff/lanes.ts";
import { handoffOperateMutants } from "../mutants/handoff/operating.ts";
import { handoffPublishMutants } from "../mutants/handoff/publishing.ts";
import { adoptScenarios } from "../scenarios/handoff/adopting.ts";
import { handoffScenarios } from "../scenarios/handoff/handoff.ts";
import { keyScenarios } from "../scenarios/handoff/keys.ts";
import { ledgerScenarios } from "../scenarios/handoff/ledger.ts";
import { laneScenarios } from "../scenarios/handoff/lanes.ts";
import { operateScenarios } from "../scenarios/handoff/operating.ts";
import { parkedScenarios } from "../scenarios/handoff/parked.ts";
import { shareScenarios } from "../scenarios/handoff/shares.ts";
import type { ExploredRoom } from "./room.ts";

export const handoffRoom: ExploredRoom = {
  name: "handoff",
  scenarios: [
    // Publish, claim, settle, recover.
    handoffScenarios,
    shareScenarios,
    operateScenarios,
    laneScenarios,
    adoptScenarios,
    ledgerScenarios,
    keyScenarios,
    parkedScenarios,
  ],
  mutants: [handoffClaimMutants, handoffPublishMutants, handoffOperateMutants, handoffLaneMutants, handoffAdoptMutants],
};
