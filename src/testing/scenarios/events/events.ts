// Scenarios of the event log: writers against each other, against readers, against kills, power cuts and failing disks, on one machine and between machines.
import type { Profile } from "../../sim/persistence.ts";
import type { Scenario } from "../../explorer/scenario.ts";
import {
  deleter,
  eventScenario,
  insider,
  intruder,
  local,
  openLate,
  reader,
  rivals,
  share,
  sleeper,
  writer,
  type EventScenarioOptions,
} from "./event-actors.ts";

const profiles: readonly Profile[] = ["ext4-ordered", "weak"];
const unique = { tags: ["stock"] };

/** On one machine, with the gate. */
export function localEventScenarios(options: EventScenarioOptions = local): Scenario[] {
  const scenario = (definition: Parameters<typeof eventScenario>[1]): Scenario => eventScenario(options, definition);
  return [
    scenario({
      name: "events: two writers, a kill",
      size: "medium",
      about: "One may be killed at any moment, also with half of its work done.",
      actors: { ada: writer(1, options), bob: writer(1, options) },
      killsMax: 1,
    }),
    scenario({
      name: "events: a writer that is killed, and a reader",
      size: "medium",
      about: "The reader takes no lock, and what it was shown stays.",
      actors: { ada: writer(2, options), cleo: reader(2, options) },
      killsMax: 1,
      mortal: ["ada"],
    }),
    ...profiles.map((profile) =>
      scenario({
        name: `events: a writer and a reader, power cuts (${profile})`,
        size: "medium",
        about: "The power fails at every moment; what was acknowledged or shown is there.",
        profile,
        powerCuts: true,
        actors: { ada: writer(2, options), cleo: reader(1, options) },
      }),
    ),
    scenario({
      name: "events: a failed sync, a kill, then a power cut",
      size: "medium",
      about: "What a dead writer has left in the page cache must not carry what comes after it.",
      profile: "weak",
      powerCuts: true,
      errors: { errnos: ["EIO"], operations: ["sync"] },
      troubles: { error: 1 },
      killsMax: 1,
      mortal: ["ada"],
      actors: { ada: writer(1, options), bob: writer(1, options) },
    }),
    scenario({
      name: "events: a sync that fails once",
      size: "medium",
      about: "The kernel has given the data up, and the next sync says that all is well.",
      profile: "weak",
      powerCuts: true,
      errors: { errnos: ["EIO"], operations: ["sync"] },
      troubles: { error: 1 },
      actors: { ada: writer(2, options), bob: writer(1, options) },
    }),
    scenario({
      name: "events: a disk that runs full",
      size: "medium",
      about:
        "Who is told that it failed for sure never finds his event; who is refused, is refused because of what happened.",
      errors: { errnos: ["ENOSPC"] },
      troubles: { error: 1 },
      actors: { ada: rivals(options), bob: writer(1, options) },
    }),
    scenario({
      name: "events: a lock file that is deleted under its holder",
      size: "medium",
      about: "Two writers are inside at once, and nothing that was acknowledged is lost.",
      actors: { ada: writer(1, options), bob: writer(1, { ...options, openLock: openLate }), dan: deleter() },
      // A writer that is stopped between its last look and its head may show what does not count.
      isShownForGood: false,
    }),
    scenario({
      name: "events: a full disk, and a lock file that is deleted",
      about: "One may be told that it failed for sure, while another takes up what it has left.",
      errors: { errnos: ["ENOSPC"], operations: ["write", "sync"] },
      troubles: { error: 1 },
      actors: { ada: insider(options), bob: intruder(options) },
      isShownForGood: false,
    }),
    scenario({
      name: "events: segments that are full at once",
      size: "medium",
      about: "Every batch begins a segment; one writer may be killed between making it and saying so.",
      actors: {
        ada: writer(1, { ...options, segmentBytesMax: 1 }),
        bob: writer(1, { ...options, segmentBytesMax: 1 }),
      },
      killsMax: 1,
      powerCuts: true,
    }),
  ];
}

/** Between machines, without any gate: only the chain of tenures decides. */
export function shareEventScenarios(options: EventScenarioOptions = share): Scenario[] {
  const scenario = (definition: Parameters<typeof eventScenario>[1]): Scenario => eventScenario(options, definition);
  return [
    scenario({
      name: "events: a writer that was cut off and comes back",
      size: "medium",
      about: "It has begun when another takes over, and its write arrives before, between or after those of the other.",
      actors: {
        ada: { ...sleeper(options), machine: "m1" },
        bob: { ...writer(1, options), machine: "m2" },
      },
      quirks: { lateWrites: true },
      killsMax: 1,
    }),
    scenario({
      name: "events: a writer that goes on after it was done",
      about: "Another writes in the same segment by then, at the same place.",
      actors: {
        ada: { ...sleeper(options, { isDone: true }), machine: "m1" },
        bob: { ...writer(1, options), machine: "m2" },
      },
      quirks: { lateWrites: true },
    }),
    scenario({
      name: "events: a writer that was cut off, and a reader",
      size: "large",
      about: "A third machine reads meanwhile, and what it was shown stays.",
      actors: {
        ada: { ...sleeper(options), machine: "m1" },
        bob: { ...writer(1, options), machine: "m2" },
        cleo: { ...reader(1, options), machine: "m3" },
      },
      quirks: { lateWrites: true },
    }),
    scenario({
      name: "events: two machines, no gate, late writes",
      size: "large",
      about: "Both write whenever they like, and what one writes may arrive long after it was taken for dead.",
      actors: {
        ada: { ...writer(1, options), machine: "m1" },
        bob: { ...writer(1, options), machine: "m2" },
      },
      quirks: { lateWrites: true },
    }),
    scenario({
      name: "events: two machines, no gate, one comes again at once",
      size: "large",
      about: "Its second call is there before its first tenure has ended.",
      actors: {
        ada: { ...writer(2, options), machine: "m1" },
        bob: { ...writer(1, options), machine: "m2" },
      },
      quirks: { lateWrites: true },
    }),
    scenario({
      name: "events: two machines, a kill, a reader",
      size: "large",
      about: "A third machine reads while one of the writers is killed.",
      actors: {
        ada: { ...writer(1, options), machine: "m1" },
        bob: { ...writer(1, options), machine: "m2" },
        cleo: { ...reader(1, options), machine: "m3" },
      },
      killsMax: 1,
      mortal: ["ada", "bob"],
      quirks: { lateWrites: true },
    }),
    scenario({
      name: "events: two machines, one wants to be the only one",
      about: "Whoever lost his tenure is judged again.",
      actors: {
        ada: { ...writer(1, options, { types: ["Taken"] }), machine: "m1" },
        bob: { ...writer(1, options, unique), machine: "m2" },
      },
      quirks: { lateWrites: true },
    }),
  ];
}

export function eventScenarios(): Scenario[] {
  return [...localEventScenarios(), ...shareEventScenarios()];
}
