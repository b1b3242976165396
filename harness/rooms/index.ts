// All rooms whose schedules are explored.
// To add a capability: write harness/rooms/<name>.ts with its scenarios and mutants, and add it
// to the list below. `npm test`, `npm run test:deep`, `npm run explore` and the bug bench find it
// here.
import type { Scenario, ScenarioSize } from "../../src/testing/explorer/scenario.ts";
import type { Mutant } from "../../src/testing/bug-bench.ts";
import { durableRoom } from "./durable.ts";
import { eventsRoom } from "./events.ts";
import { filesRoom } from "./files.ts";
import { handoffRoom } from "./handoff.ts";
import { locksRoom } from "./locks.ts";
import { objectsRoom } from "./objects.ts";
import type { ExploredRoom } from "./room.ts";
import { storeRoom } from "./store.ts";
import { windowsRoom } from "./windows.ts";

const rooms: readonly ExploredRoom[] = [
  durableRoom,
  locksRoom,
  eventsRoom,
  handoffRoom,
  objectsRoom,
  filesRoom,
  storeRoom,
  windowsRoom,
];

/** A scenario with its room and size. */
export interface ListedScenario {
  /** The scenario. */
  readonly scenario: Scenario;
  /** The part of Holdfast that it tests. */
  readonly room: string;
  /** The amount of exploration that it needs. */
  readonly size: ScenarioSize;
}

/** Returns the scenarios of all rooms. */
export function allScenarios(): ListedScenario[] {
  return rooms.flatMap(({ name: room, scenarios }) =>
    scenarios
      .flatMap((scenariosOf) => scenariosOf())
      .map((scenario) => ({ scenario, room, size: scenario.size ?? "small" })),
  );
}

/** The mutants of all rooms. The explorer must catch each of them. */
export const mutants: readonly (Mutant & { readonly room: string })[] = rooms.flatMap((room) =>
  room.mutants.flat().map((mutant) => ({ ...mutant, room: room.name })),
);
