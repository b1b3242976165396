// Scenarios and mutants of src/store.ts. A new file of either is one line here.
import { adoptingMutants } from "../mutants/store/adopting.ts";
import { storeMutants } from "../mutants/store/making.ts";
import { adoptingScenarios } from "../scenarios/store/adopting.ts";
import { storeScenarios } from "../scenarios/store/making.ts";
import type { ExploredRoom } from "./room.ts";

export const storeRoom: ExploredRoom = {
  name: "store",
  scenarios: [storeScenarios, adoptingScenarios],
  mutants: [storeMutants, adoptingMutants],
};
