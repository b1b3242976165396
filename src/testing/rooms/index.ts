// All rooms whose schedules are explored.
// To add a capability: write src/testing/rooms/<name>.ts with its scenarios and mutants, and add it
// to the list below. `npm test`, `npm run test:deep`, `npm run explore` and the bug bench find it
// here.
import type { Scenario, ScenarioSize } from "../explorer/scenario.ts";
import type { Mutant } from "../mutants/mutant.ts";
import { durableRoom } from "./durable.ts";
import { eventsRoom } from "./events.ts";
import { filesRoom } from "./files.ts";
import { handoffRoom } from "./handoff.ts";
import { locksRoom } from "./locks.ts";
import { objectsRoom } from "./objects.ts";
import type { ExploredRoom } from "./room.ts";
import { storeRoom } from "./store.ts";

const rooms: readonly ExploredRoom[] = [
  durableRoom,
  locksRoom,
  eventsRoom,
  handoffRoom,
  objectsRoom,
  filesRoom,
  storeRoom,
];

export interface ListedScenario {
  readonly scenario: Scenario;
  readonly room: string;
  readonly size: ScenarioSize;
}

export function allScenarios(): ListedScenario[] {
  return rooms.flatMap(({ name: room, scenarios }) =>
    scenarios
      .flatMap((scenariosOf) => scenariosOf())
      .map((scenario) => ({ scenario, room, size: scenario.size ?? "small" })),
  );
}

/** Known-wrong variants; the explorer must catch each of them. */
export const mutants: readonly (Mutant & { readonly room: string })[] = rooms.flatMap((room) =>
  room.mutants.flat().map((mutant) => ({ ...mutant, room: room.name })),
);
