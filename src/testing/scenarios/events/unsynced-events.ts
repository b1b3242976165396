// Scenarios of power cuts in an event log where some processes do not sync, or where lines are
// visible before their sync.
import type { Ports } from "../../../ports/ports.ts";
import type { Scenario } from "../../explorer/scenario.ts";
import { Machine } from "../../sim/machine.ts";
import type { Profile } from "../../sim/persistence.ts";
import {
  eventScenario,
  follower,
  local,
  logIsWhole,
  makeLogWithOldHead,
  reader,
  repeater,
  settler,
  share,
  writer,
  type EventScenarioOptions,
} from "./event-actors.ts";

const profiles: readonly Profile[] = ["ext4-ordered", "weak"];

/** On one machine: one process has durability "none", the other one syncs. */
export function mixedDurabilityScenarios(options: EventScenarioOptions = local): Scenario[] {
  const careless = { ...options, isSynced: false, mayBeLost: true };
  const scenario = (definition: Parameters<typeof eventScenario>[1]): Scenario =>
    eventScenario(options, { powerCuts: true, ...definition });
  return [
    scenario({
      name: "events: one does not sync, full segments, power cuts",
      size: "medium",
      about: "The other one acknowledges lines behind a segment that was not synced yet.",
      profile: "weak",
      actors: { ada: writer(2, { ...careless, segmentBytesMax: 1 }), bob: writer(1, options) },
    }),
    scenario({
      name: "events: one does not sync, the other repeats its append, power cuts",
      size: "medium",
      about: "A process that syncs may rely on the answer that its event is there already.",
      profile: "weak",
      actors: { ada: repeater("sold", careless), bob: repeater("sold", options) },
    }),
  ];
}

/** A log of mode `share` on a local disk, as the file server itself uses it. */
export function shareOnLocalDiskScenarios(options: EventScenarioOptions = share): Scenario[] {
  return profiles.map((profile) =>
    eventScenario(options, {
      name: `events: mode share on a local disk, a reader, power cuts (${profile})`,
      size: "medium",
      about: "A slot is visible before its name is durable; every event that a reader has seen is there after the cut.",
      profile,
      powerCuts: true,
      actors: { ada: writer(1, options), cleo: reader(1, options) },
    }),
  );
}

/** The audit runs in the boot of the actors. */
function inTheSameBoot(ports: Ports): Ports {
  return { ...ports, host: { ...ports.host, bootId: new Machine("m1").bootId } };
}

/**
 * A file system that goes away while it is in use, and comes back in the same boot without what was
 * not on the disk.
 */
export function comesBackScenarios(options: EventScenarioOptions = local): Scenario[] {
  const audit: Scenario["audit"] = (ports, facts) => logIsWhole({ options }, inTheSameBoot(ports), facts);
  const careless = { ...options, isSynced: false, mayBeLost: true };
  return [
    eventScenario(options, {
      name: "events: the file system comes back under the same boot id",
      size: "medium",
      about: "It may come back with an older head; every acknowledged event is there, in the same line.",
      profile: "weak",
      powerCuts: true,
      actors: { ada: writer(1, options), cleo: follower(options) },
      audit,
    }),
    eventScenario(options, {
      name: "events: the file system comes back without what was not synced",
      about: "The head may name lines that are gone, and the log goes on all the same.",
      profile: "weak",
      powerCuts: true,
      actors: { ada: writer(1, careless) },
      audit,
    }),
    eventScenario(options, {
      name: "events: the file system comes back, and goes away again",
      size: "medium",
      about: "Acknowledged lines are written again at their offset, and are there at every moment.",
      profile: "weak",
      powerCuts: true,
      setup: (ports) => makeLogWithOldHead(inTheSameBoot(ports), options),
      actors: { ada: settler(options), cleo: follower(options) },
      audit: async (ports, facts) => {
        const told = { actor: "setup", what: "acknowledged", value: { id: "second", position: 2 } };
        await logIsWhole({ options }, inTheSameBoot(ports), [...facts, told]);
      },
    }),
  ];
}

export function unsyncedEventScenarios(): Scenario[] {
  return [...mixedDurabilityScenarios(), ...shareOnLocalDiskScenarios(), ...comesBackScenarios()];
}
