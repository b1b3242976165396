// Scenarios of the event log: competing writers, readers, kills, power cuts and failing disks, on one machine and
// between machines.
import type { Scenario } from "../../../src/testing/explorer/scenario.ts";
import {
  deleter,
  eventScenario,
  insider,
  intruder,
  keeper,
  local,
  openLate,
  reader,
  rivals,
  share,
  sleeper,
  writer,
  type EventScenarioOptions,
} from "./event-actors.ts";

const unique = { tags: ["stock"] };

/** The scenarios on one machine, with the gate. */
export function localEventScenarios(options: EventScenarioOptions = local): Scenario[] {
  const scenario = (definition: Parameters<typeof eventScenario>[1]): Scenario => eventScenario(options, definition);
  return [
    scenario({
      name: "events: two writers, a kill",
      size: "medium",
      about: "A writer may be killed at any moment, even with its work half done.",
      actors: { ada: writer(1, options), bob: writer(1, options) },
      killsMax: 1,
    }),
    scenario({
      name: "events: a writer that keeps its turn, and another",
      size: "medium",
      about:
        "One writer frees the gate between its appends, and may be killed there. The other enters then, or waits for the end of the turn.",
      actors: { ada: keeper(options), bob: writer(1, options) },
      killsMax: 1,
      mortal: ["ada"],
    }),
    scenario({
      name: "events: a writer that is killed, and a reader",
      size: "medium",
      about: "The reader takes no lock, and every event that it has seen stays.",
      actors: { ada: writer(1, options), cleo: reader(2, options) },
      killsMax: 1,
      mortal: ["ada"],
    }),
    scenario({
      name: "events: a writer and a reader, power cuts (weak)",
      size: "medium",
      about: "The power fails at every moment. Every event that was acknowledged or seen survives.",
      // This profile includes every state that "ext4-ordered" can leave.
      profile: "weak",
      powerCuts: true,
      actors: { ada: writer(2, options), cleo: reader(1, options) },
    }),
    scenario({
      name: "events: a failed sync, a kill, then a power cut",
      size: "medium",
      about: "A dead writer leaves a line in the page cache. No acknowledged line may depend on it.",
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
      about: "The kernel drops the data when a sync fails, and the next sync succeeds.",
      profile: "weak",
      powerCuts: true,
      errors: { errnos: ["EIO"], operations: ["sync"] },
      troubles: { error: 1 },
      actors: { ada: writer(2, options), bob: writer(1, options) },
    }),
    scenario({
      name: "events: a disk that runs full",
      size: "medium",
      about: "A failed append never appears in the log. A refusal is based only on an event that does.",
      errors: { errnos: ["ENOSPC"] },
      troubles: { error: 1 },
      actors: { ada: rivals(options), bob: writer(1, options) },
    }),
    scenario({
      name: "events: a lock file that is deleted under its holder",
      size: "medium",
      about: "Two writers hold the gate at once, yet no acknowledged event is lost.",
      actors: { ada: writer(1, options), bob: writer(1, { ...options, openLock: openLate }), dan: deleter() },
      // A writer that pauses between its last check and its head may show lines that do not count.
      isShownForGood: false,
    }),
    scenario({
      name: "events: a full disk, and a lock file that is deleted",
      size: "medium",
      about: "One append certainly fails while another writer accepts the lines that it left.",
      errors: { errnos: ["ENOSPC"], operations: ["write", "sync"] },
      troubles: { error: 1 },
      actors: { ada: insider(options), bob: intruder(options) },
      isShownForGood: false,
    }),
    scenario({
      name: "events: segments that are full at once",
      size: "medium",
      about: "Every batch begins a segment. A writer may be killed between the segment and the head.",
      actors: {
        ada: writer(1, { ...options, segmentBytesMax: 1 }),
        bob: writer(1, { ...options, segmentBytesMax: 1 }),
      },
      killsMax: 1,
      powerCuts: true,
    }),
  ];
}

/** The scenarios between machines, without any gate: the tenure chain alone decides. */
export function shareEventScenarios(options: EventScenarioOptions = share): Scenario[] {
  const scenario = (definition: Parameters<typeof eventScenario>[1]): Scenario => eventScenario(options, definition);
  return [
    scenario({
      name: "events: a writer that was cut off and comes back",
      size: "medium",
      about:
        "The writer has a session when another writer takes over. Its write arrives before, between or after the other's writes.",
      actors: {
        ada: { ...sleeper(options), machine: "m1" },
        bob: { ...writer(1, options), machine: "m2" },
      },
      quirks: { lateWrites: true },
      killsMax: 1,
    }),
    scenario({
      name: "events: a writer that goes on after it was done",
      about: "By then another writer writes into the same segment at the same offset.",
      actors: {
        ada: { ...sleeper(options, { isDone: true }), machine: "m1" },
        bob: { ...writer(1, options), machine: "m2" },
      },
      quirks: { lateWrites: true },
    }),
    scenario({
      name: "events: a writer that was cut off, and a reader",
      size: "large",
      about: "A third machine reads meanwhile, and every event that it has seen stays.",
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
      about: "Both machines write at any time, and a write may arrive long after its writer was declared dead.",
      actors: {
        ada: { ...writer(1, options), machine: "m1" },
        bob: { ...writer(1, options), machine: "m2" },
      },
      quirks: { lateWrites: true },
    }),
    scenario({
      name: "events: two machines, no gate, one comes again at once",
      size: "large",
      about: "One machine's second call is queued before its first session has ended.",
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
      size: "medium",
      about: "A call that lost its session is evaluated again.",
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
