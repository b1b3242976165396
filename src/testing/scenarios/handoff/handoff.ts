// Scenarios of hand-off: publishers, workers and reapers that are killed or sleep at any moment.
import { BoxLayout } from "../../../handoff/box/layout.ts";
import type { Scenario } from "../../explorer/scenario.ts";
import {
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
import { directory, large, plant, publication, settleAll } from "./handoff-world.ts";

export function handoffScenarios(steps: Steps = realSteps): Scenario[] {
  const keyed = publication("an order", { key: "order 1" });
  const tickets = [publication("an order")];
  return [
    handoffScenario(
      {
        name: "handoff: two workers and one ticket, one is killed",
        about: "One of them gets it; one may be killed at any moment, and its ticket goes back.",
        tickets,
        actors: { ada: worker(steps), bob: claimer(steps) },
        killsMax: 1,
        mortal: ["ada"],
      },
      steps,
    ),
    handoffScenario({
      name: "handoff: a publisher is killed",
      about: "At any step: nothing was published, or all of it was, and no payload is left.",
      actors: { ada: producer(steps, publication(large)) },
      killsMax: 1,
    }),
    handoffScenario({
      name: "handoff: two publishers of one key, one is killed",
      about: "One ticket comes of it, and both are told its id.",
      actors: { ada: producer(steps, keyed), bob: producer(steps, keyed) },
      killsMax: 1,
      mortal: ["ada"],
    }),
    handoffScenario({
      name: "handoff: a publisher that sleeps, and a reaper",
      size: "medium",
      about: "What it has staged is taken away, and its payload with it; it is told that nothing was published.",
      watched: ["ada"],
      removesPayloads: true,
      actors: { ada: producer(steps, publication(large)), rea: reaper(steps) },
    }),
    handoffScenario({
      name: "handoff: a publisher of a key that sleeps, and a reaper",
      size: "medium",
      about: "Once its key is won the ticket is published, by whichever of the two.",
      watched: ["ada"],
      actors: { ada: producer(steps, keyed), rea: reaper(steps) },
    }),
    handoffScenario({
      name: "handoff: a worker that sleeps before it commits, and its successor",
      size: "medium",
      about: "Its ticket goes back, and it cannot commit any more.",
      tickets,
      watched: ["ada"],
      actors: { ada: claimant(steps), bob: successor(steps, { isIdle: true }) },
    }),
    handoffScenario({
      name: "handoff: a worker with outputs that sleeps before it commits, and its successor",
      size: "medium",
      about: "Its staged outputs are gone before its ticket is back.",
      tickets,
      watched: ["ada"],
      actors: { ada: claimant(steps, { hasOutput: true }), bob: successor(steps, { isIdle: true }) },
    }),
    handoffScenario({
      name: "handoff: a worker that sleeps, and its successor",
      size: "medium",
      about: "From before its claim to after its commit.",
      tickets,
      watched: ["ada"],
      actors: { ada: worker(steps), bob: successor(steps) },
    }),
    handoffScenario({
      name: "handoff: a worker that sleeps before it commits, a reaper, and the next worker",
      about: "The next worker has the ticket only when the sleeper cannot commit any more.",
      size: "medium",
      tickets,
      watched: ["ada"],
      actors: { ada: claimant(steps), rea: reaper(steps), bob: worker(steps, { isIdle: true }) },
    }),
    handoffScenario({
      name: "handoff: a claim into a directory that is being removed",
      about: "The claim is refused, or the ticket goes back: it never stays in a directory that no process empties.",
      tickets,
      watched: ["ada"],
      actors: { ada: claimer(steps), rea: reaper(steps) },
    }),
    handoffScenario({
      name: "handoff: two reapers of one worker",
      size: "medium",
      about: "The ticket goes back once, whichever of them moves it.",
      tickets,
      watched: ["ada"],
      areSettled: true,
      meanwhile: settleAll,
      actors: { ada: silentClaimant(steps), rea: fresh(collector(steps)), roy: fresh(collector(steps)) },
    }),
    handoffScenario({
      name: "handoff: a reaper is killed",
      about: "What it has begun, the next one finishes: no ticket is lost, and nothing is left in the trash.",
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
      about: "One result counts, and both tickets are done with it.",
      tickets: [keyed],
      // As after the key was forgotten: a second ticket that has it.
      meanwhile: async (ports) => {
        await ports.disk.unlink(new BoxLayout(directory).key("order 1"));
        await plant(ports, [keyed]);
      },
      isRemoved: (path) => path.startsWith(`${directory}/keys/`),
      actors: { ada: worker(steps), bob: worker(steps) },
    }),
    handoffScenario(
      {
        name: "handoff: two keys that look alike",
        about: "Each has an entry of its own.",
        tickets: [publication("1", { key: "a/1" }), publication("2", { key: "a_1" })],
        actors: { ada: worker(steps) },
      },
      steps,
    ),
    handoffScenario({
      name: "handoff: a publisher, power cuts",
      about: "What was acknowledged is there after each of them, and a key has its ticket.",
      profile: "journal",
      powerCuts: true,
      actors: { ada: producer(steps, publication(large, { key: "order 1" })) },
    }),
    handoffScenario({
      name: "handoff: a worker, power cuts",
      about: "What was committed stays committed, and the ticket is there.",
      profile: "journal",
      powerCuts: true,
      tickets,
      actors: { ada: worker(steps) },
    }),
    handoffScenario({
      name: "handoff: a worker with outputs, power cuts",
      about: "Result and outputs are there together, or neither is.",
      profile: "journal",
      powerCuts: true,
      tickets,
      actors: { ada: worker(steps, { hasOutput: true }) },
    }),
    handoffScenario({
      name: "handoff: a publisher and a worker, power cuts",
      about: "A ticket that is claimed before its publisher has synced it is not lost.",
      profile: "journal",
      powerCuts: true,
      actors: { ada: producer(steps, publication("an order")), bob: worker(steps) },
    }),
  ];
}
