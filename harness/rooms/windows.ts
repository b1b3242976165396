// Scenarios and mutants of all rooms on Windows. A new file of either is one line here.
import { windowsMutants } from "../mutants/windows/windows.ts";
import { windowsScenarios } from "../scenarios/windows/windows.ts";
import type { ExploredRoom } from "./room.ts";

export const windowsRoom: ExploredRoom = {
  name: "windows",
  scenarios: [
    // Redo, semaphores, files, keys and hand-offs beside a virus scanner.
    windowsScenarios,
  ],
  mutants: [windowsMutants],
};
