// Scenarios of what a power cut leaves of an event log in which not everybody syncs, or not everything is synced yet that can be seen.
import type { Scenario } from "../explorer/scenario.ts";
import type { Profile } from "../sim/persistence.ts";
import { eventScenario, local, reader, repeater, share, writer, type EventScenarioOptions } from "./event-actors.ts";

const profiles: readonly Profile[] = ["ext4-ordered", "weak"];

/** On one machine, where one process has given up its own durability and the other has not. */
export function mixedDurabilityScenarios(options: EventScenarioOptions = local): Scenario[] {
  const careless = { ...options, isSynced: false, mayBeLost: true };
  const scenario = (definition: Parameters<typeof eventScenario>[1]): Scenario =>
    eventScenario(options, { powerCuts: true, ...definition });
  return [
    scenario({
      name: "events: one does not sync, full segments, power cuts",
      about: "What the other acknowledges stands behind a segment that nobody has synced yet.",
      profile: "weak",
      actors: { ada: writer(2, { ...careless, segmentBytesMax: 1 }), bob: writer(1, options) },
    }),
    scenario({
      name: "events: one does not sync, the other repeats its append, power cuts",
      about: "Whoever syncs and is told that it is there already may rely on that.",
      profile: "weak",
      actors: { ada: repeater("sold", careless), bob: repeater("sold", options) },
    }),
  ];
}

/** A log of mode `share` on a disk of this machine, as its file server itself uses it. */
export function shareOnLocalDiskScenarios(options: EventScenarioOptions = share): Scenario[] {
  return profiles.map((profile) =>
    eventScenario(options, {
      name: `events: mode share on a local disk, a reader, power cuts (${profile})`,
      about: "A slot has its name before that is durable; what a reader was shown is there after the cut.",
      profile,
      powerCuts: true,
      actors: { ada: writer(1, options), cleo: reader(1, options) },
    }),
  );
}

export function unsyncedEventScenarios(): Scenario[] {
  return [...mixedDurabilityScenarios(), ...shareOnLocalDiskScenarios()];
}
