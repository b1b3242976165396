// Scenarios and mutants of src/handoff. A new file of either is one line here.
import { handoffScenarios } from "../scenarios/handoff/handoff.ts";
import type { ExploredRoom } from "./room.ts";

export const handoffRoom: ExploredRoom = {
  name: "handoff",
  scenarios: [handoffScenarios],
  mutants: [],
};
