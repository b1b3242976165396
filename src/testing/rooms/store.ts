// Scenarios and mutants of src/store.ts. A new file of either is one line here.
import { storeMutants } from "../mutants/store/making.ts";
import { storeScenarios } from "../scenarios/store/making.ts";
import type { ExploredRoom } from "./room.ts";

export const storeRoom: ExploredRoom = { name: "store", scenarios: [storeScenarios], mutants: [storeMutants] };
