// Scenarios of power cuts in an event log: some processes do not sync, or lines are visible before their sync.
import type { Ports } from "../../../src/ports/ports.ts";
import type { Scenario } from "../../../src/testing/explorer/scenario.ts";
import { Machine } from "../../../src/testing/sim/machine.ts";
import type { CrashProfile } from "../../../src/testing/sim/persistence.ts";
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

const profiles: readonly CrashProfile[] = ["ext4-ordered", "weak"];

/** On one machine, one process has durability "none" and the other one syncs. */
export function mixedDurabilityScenarios(options: EventScenarioOptions = local): Scenario[] {
  const careless = { ...options, isSynced: false, mayBeLost: true };
  const scenario = (definition: Parameters<typeof eventScenario>[1]): Scenario =>
    eventScenario(options, { powerCuts: true, ...definition });
  return [
    scenario({
      name: "events: one does not sync, full segments, power cuts",
      size: "medium",
      about: "The syncing process acknowledges lines that follow an unsynced segment.",
      profile: "weak",
      actors: { ada: writer(2, { ...careless, segmentBytesMax: 1 }), bob: writer(1, options) },
    }),
    scenario({
      name: "events: one does not sync, the other repeats its append, power cuts",
      size: "medium",
      about: "A process that syncs may rely on the answer that its event already exists.",
      profile: "weak",
      actors: { ada: repeater("sold", careless), bob: repeater("sold", options) },
    }),
  ];
}

/** A log of mode `share` on a local disk, as processes on the file server itself use it. */
export function shareOnLocalDiskScenarios(options: EventScenarioOptions = share): Scenario[] {
  return profiles.map((profile) =>
    eventScenario(options, {
      name: `events: mode share on a local disk, a reader, power cuts (${profile})`,
      size: "medium",
      about: "A slot is visible before its name is durable. Every event that a reader has seen survives the power cut.",
      profile,
      powerCuts: true,
      actors: { ada: writer(1, options), cleo: reader(1, options) },
    }),
  );
}

/** Lets the audit run in the same boot as the actors. */
function inTheSameBoot(ports: Ports): Ports {
  return { ...ports, host: { ...ports.host, bootId: new Machine("m1").bootId } };
}

/** A file system disappears while it is in use, and returns in the same boot without its unsynced data. */
export function comesBackScenarios(options: EventScenarioOptions = local): Scenario[] {
  const audit: Scenario["audit"] = (ports, facts) => logIsWhole({ options }, inTheSameBoot(ports), facts);
  const careless = { ...options, isSynced: false, mayBeLost: true };
  return [
    eventScenario(options, {
      name: "events: the file system comes back under the same boot id",
      size: "medium",
      about: "The file system may return with an older head. Every acknowledged event survives, in the same line.",
      profile: "weak",
      powerCuts: true,
      actors: { ada: writer(1, options), cleo: follower(options) },
      audit,
    }),
    eventScenario(options, {
      name: "events: the file system comes back without what was not synced",
      about: "The head may name lines that are gone, yet the log can be appended to.",
      profile: "weak",
      powerCuts: true,
      actors: { ada: writer(1, careless) },
      audit,
    }),
    eventScenario(options, {
      name: "events: the file system comes back, and goes away again",
      size: "medium",
      about: "Settling writes acknowledged lines again at their offset. They are present at every moment.",
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
