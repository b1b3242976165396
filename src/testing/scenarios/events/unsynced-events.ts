// Scenarios of what a power cut leaves of an event log in which not everybody syncs, or not everything is synced yet that can be seen.
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

/** On one machine, where one process has given up its own durability and the other has not. */
export function mixedDurabilityScenarios(options: EventScenarioOptions = local): Scenario[] {
  const careless = { ...options, isSynced: false, mayBeLost: true };
  const scenario = (definition: Parameters<typeof eventScenario>[1]): Scenario =>
    eventScenario(options, { powerCuts: true, ...definition });
  return [
    scenario({
      name: "events: one does not sync, full segments, power cuts",
      size: "medium",
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

/** As the processes of the scenarios, which all run on it, see it. */
function inTheSameBoot(ports: Ports): Ports {
  return { ...ports, host: { ...ports.host, bootId: new Machine("m1").bootId } };
}

/** A file system that goes away under those who use it, and comes back without what was not on the disk yet, in the same boot. */
export function comesBackScenarios(options: EventScenarioOptions = local): Scenario[] {
  const audit: Scenario["audit"] = (ports, facts) => logIsWhole({ options }, inTheSameBoot(ports), facts);
  const careless = { ...options, isSynced: false, mayBeLost: true };
  return [
    eventScenario(options, {
      name: "events: the file system comes back under the same boot id",
      about: "The head that it comes back with may be an older one; what was acknowledged is there, as it was.",
      profile: "weak",
      powerCuts: true,
      actors: { ada: writer(1, options), cleo: follower(options) },
      audit,
    }),
    eventScenario(options, {
      name: "events: the file system comes back without what was not synced",
      about: "The head may tell of lines that are gone, and nobody is stopped by that for good.",
      profile: "weak",
      powerCuts: true,
      actors: { ada: writer(1, careless) },
      audit,
    }),
    eventScenario(options, {
      name: "events: the file system comes back, and goes away again",
      about: "What was acknowledged is written again in its place, and is there at every moment.",
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
