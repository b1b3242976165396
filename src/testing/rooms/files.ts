// Scenarios and mutants of src/files. A new file of either is one line here.
import { fileMutants } from "../mutants/files/files.ts";
import { fileScenarios } from "../scenarios/files/files.ts";
import type { ExploredRoom } from "./room.ts";

export const filesRoom: ExploredRoom = {
  name: "files",
  scenarios: [
    // The operations on a tree.
    fileScenarios,
  ],
  mutants: [fileMutants],
};
