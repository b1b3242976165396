// Scenarios of hand-off: publishers, workers and reapers that are killed or sleep at any moment.
import { BoxLayout } from "../../../src/handoff/box/layout.ts";
import type { Scenario } from "../../../src/testing/explorer/scenario.ts";
import {
  busyClaimant,
  claimant,
  claimer,
  collector,
  fresh,
  producer,
  realSteps,
  reaper,
  silentClaimant,
  successor,
  worker,
  type Steps,
} from "./handoff-actors.ts";
import { handoffScenario } from "./handoff-audit.ts";
import { publishingScenarios } from "./publishing.ts";
import { directory, large, plant, publication, settleAll } from "./handoff-world.ts";

export function handoffScenarios(steps: Steps = realSteps): Scenario[] {
  const keyed = publication("an order", { key: "order 1" });
  const tickets = [publication("an order")];
  return [
    handoffScenario(
      {
        name: "handoff: two workers and one ticket, one is killed",
        about: "One worker gets the ticket. One may be killed at any moment, and its ticket returns to the queue.",
        tickets,
        actors: { ada: worker(steps), bob: claimer(steps) },
        killsMax: 1,
        mortal: ["ada"],
      },
      steps,
    ),
    handoffScenario({
      name: "handoff: a publisher is killed",
      about:
        "The publisher may be killed at any step. It has published nothing or everything, and no stray payload is left.",
      actors: { ada: producer(steps, publication(large)) },
      killsMax: 1,
    }),
    handoffScenario({
      name: "handoff: two publishers of one key, one is killed",
      about: "The two publishes make one ticket, and both publishers get its id.",
      actors: { ada: producer(steps, keyed), bob: producer(steps, keyed) },
      killsMax: 1,
      mortal: ["ada"],
    }),
    handoffScenario({
      name: "handoff: a publisher that sleeps, and a reaper",
      size: "medium",
      about: "The reaper removes the staged ticket and its payload. The publisher learns that nothing was published.",
      watched: ["ada"],
      removesPayloads: true,
      actors: { ada: producer(steps, publication(large)), rea: reaper(steps) },
    }),
    handoffScenario({
      name: "handoff: a publisher of a key that sleeps, and a reaper",
      size: "medium",
      about: "Once its key is won, one of the two publishes the ticket.",
      watched: ["ada"],
      actors: { ada: producer(steps, keyed), rea: reaper(steps) },
    }),
    handoffScenario({
      name: "handoff: a worker that sleeps before it commits, and its successor",
      size: "medium",
      about: "The sleeper's ticket returns to the queue, and the sleeper can no longer commit.",
      tickets,
      watched: ["ada"],
      actors: { ada: claimant(steps), bob: successor(steps, { isIdle: true }) },
    }),
    handoffScenario({
      name: "handoff: a worker with outputs that sleeps before it commits, and its successor",
      size: "medium",
      about: "The sleeper's staged outputs are gone before its ticket is back in the queue.",
      tickets,
      watched: ["ada"],
      actors: { ada: claimant(steps, { hasOutput: true }), bob: successor(steps, { isIdle: true }) },
    }),
    handoffScenario({
      name: "handoff: a worker that sleeps, and its successor",
      size: "medium",
      about: "The worker may sleep at any moment from before its claim until after its commit.",
      tickets,
      watched: ["ada"],
      actors: { ada: worker(steps), bob: successor(steps) },
    }),
    handoffScenario({
      name: "handoff: a worker that sleeps before it commits, a reaper, and the next worker",
      about: "The next worker gets the ticket only when the sleeper can no longer commit.",
      size: "medium",
      tickets,
      watched: ["ada"],
      actors: { ada: claimant(steps), rea: reaper(steps), bob: worker(steps, { isIdle: true }) },
    }),
    handoffScenario({
      name: "handoff: a claim into a directory that is being removed",
      about:
        "The claim is refused, or the ticket returns to the queue. It never stays in a directory that no process empties.",
      tickets,
      watched: ["ada"],
      actors: { ada: claimer(steps), rea: reaper(steps) },
    }),
    handoffScenario({
      name: "handoff: two reapers of one worker",
      size: "medium",
      about: "The ticket returns to the queue once, whichever reaper moves it.",
      tickets,
      watched: ["ada"],
      areSettled: true,
      meanwhile: settleAll,
      actors: { ada: silentClaimant(steps), rea: fresh(collector(steps)), roy: fresh(collector(steps)) },
    }),
    handoffScenario({
      name: "handoff: a reaper is killed",
      about:
        "The next reaper finishes the work of the killed one. No ticket is lost, and nothing is left in the trash.",
      tickets: [publication(large)],
      watched: ["ada"],
      removesPayloads: true,
      actors: { ada: silentClaimant(steps), rea: reaper(steps) },
      killsMax: 1,
      mortal: ["rea"],
    }),
    handoffScenario({
      name: "handoff: a worker and a process that collects what the dead left",
      about: "The payload of a ticket stays, wherever the ticket is on its way.",
      tickets: [publication(large)],
      watched: ["ada", "rea"],
      removesPayloads: true,
      actors: { ada: claimer(steps), rea: collector(steps) },
    }),
    handoffScenario({
      name: "handoff: two tickets of one key and two workers",
      about: "One result counts, and both tickets are finished with it.",
      size: "medium",
      tickets: [keyed],
      // After the key was forgotten, a second ticket has it.
      meanwhile: async (ports) => {
        await ports.disk.unlink(new BoxLayout(directory).key("order 1"));
        await plant(ports, [keyed]);
      },
      isRemoved: (path) => path.startsWith(`${directory}/keys/`),
      actors: { ada: worker(steps), bob: worker(steps) },
    }),
    handoffScenario({
      name: "handoff: two tickets of one key and two workers, one with outputs",
      about: "The same, where the names in the ledger are won by a link and by a rename.",
      size: "medium",
      tickets: [keyed],
      meanwhile: async (ports) => {
        await ports.disk.unlink(new BoxLayout(directory).key("order 1"));
        await plant(ports, [keyed]);
      },
      isRemoved: (path) => path.startsWith(`${directory}/keys/`),
      actors: { ada: worker(steps), bob: worker(steps, { hasOutput: true }) },
    }),
    handoffScenario(
      {
        name: "handoff: two keys that look alike",
        about: "Each key has its own ledger entry.",
        tickets: [publication("1", { key: "a/1" }), publication("2", { key: "a_1" })],
        actors: { ada: worker(steps) },
      },
      steps,
    ),
    handoffScenario({
      name: "handoff: a publisher, power cuts",
      about: "An acknowledged ticket survives each power cut, and a won key has its ticket.",
      profile: "journal",
      powerCuts: true,
      actors: { ada: producer(steps, publication(large, { key: "order 1" })) },
    }),
    handoffScenario({
      name: "handoff: a worker, power cuts",
      about: "A committed result stays committed, and the ticket exists.",
      profile: "journal",
      powerCuts: true,
      tickets,
      actors: { ada: worker(steps) },
    }),
    handoffScenario({
      name: "handoff: a worker with outputs, power cuts",
      about: "After a power cut, result and outputs are both present, or neither is.",
      profile: "journal",
      powerCuts: true,
      tickets,
      actors: { ada: worker(steps, { hasOutput: true }) },
    }),
    handoffScenario({
      name: "handoff: three results at once, two of them under one key",
      about: "One of the two results counts, and both tickets are finished with it.",
      size: "medium",
      tickets: [publication("0"), keyed],
      // After the key was forgotten, a second ticket has it.
      setup: async (ports) => {
        await ports.disk.unlink(new BoxLayout(directory).key("order 1"));
        await plant(ports, [keyed]);
      },
      isRemoved: (path) => path.startsWith(`${directory}/keys/`),
      killsMax: 1,
      actors: { ada: busyClaimant(steps, 3) },
    }),
    ...publishingScenarios(steps),
    handoffScenario({
      name: "handoff: a publisher and a worker, power cuts",
      about: "A ticket is not lost if it is claimed before its publisher has synced it.",
      profile: "journal",
      powerCuts: true,
      actors: { ada: producer(steps, publication("an order")), bob: worker(steps) },
    }),
  ];
}
