// Scenarios of hand-off: publishers, workers and reapers that are killed or sleep at any moment.
import type { Scenario } from "../../explorer/scenario.ts";
import { share } from "../volumes.ts";
import {
  handoffScenario,
  large,
  leaseMs,
  plant,
  producer,
  publication,
  realSteps,
  reaper,
  worker,
  type Steps,
} from "./handoff-actors.ts";

export function handoffScenarios(steps: Steps = realSteps): Scenario[] {
  const ordered = publication("an order", { key: "order 1" });
  return [
    handoffScenario({
      name: "handoff: two workers and one ticket",
      about: "One of them gets it; one may be killed at any moment, and its ticket goes back.",
      setup: (ports) => plant(ports, publication("an order")),
      actors: { ada: worker(steps), bob: worker(steps) },
      killsMax: 1,
    }),
    handoffScenario({
      name: "handoff: a publisher is killed",
      about: "At any step: nothing was published, or all of it was.",
      actors: { ada: producer(steps, publication(large)) },
      killsMax: 1,
    }),
    handoffScenario({
      name: "handoff: two publishers of one key, one is killed",
      about: "One ticket comes of it, and both are told its id.",
      actors: { ada: producer(steps, ordered), bob: producer(steps, ordered) },
      killsMax: 1,
    }),
    handoffScenario({
      name: "handoff: a publisher that sleeps, and a reaper",
      about: "What it has staged is taken away, or published for it, and its payload with it.",
      beatsMax: 8,
      pauses: { ms: 3 * leaseMs, count: 1, actors: ["ada"] },
      actors: { ada: producer(steps, publication(large)), rea: reaper(steps) },
    }),
    handoffScenario({
      name: "handoff: a publisher of a key that sleeps, and a reaper",
      about: "Once its key is won the ticket is published, by whichever of the two.",
      beatsMax: 8,
      pauses: { ms: 3 * leaseMs, count: 1, actors: ["ada"] },
      actors: { ada: producer(steps, ordered), rea: reaper(steps) },
    }),
    handoffScenario({
      name: "handoff: a worker that sleeps, and a reaper",
      about: "Its ticket goes back, and it cannot commit any more.",
      setup: (ports) => plant(ports, publication("an order")),
      beatsMax: 8,
      pauses: { ms: 3 * leaseMs, count: 1, actors: ["ada"] },
      actors: { ada: worker(steps), rea: reaper(steps) },
    }),
    handoffScenario({
      name: "handoff: publish and claim with lost replies",
      about: "On a share: a rename may have happened though its answer says otherwise.",
      volume: share,
      profile: "share",
      troubles: { lostReply: 1, retransmit: 1 },
      actors: { ada: { ...producer(steps, ordered), machine: "m1" }, bob: { ...worker(steps), machine: "m2" } },
    }),
    handoffScenario({
      name: "handoff: a publisher, power cuts",
      about: "What was acknowledged is there after each of them.",
      profile: "weak",
      powerCuts: true,
      actors: { ada: producer(steps, publication(large, { key: "order 1" })) },
    }),
    handoffScenario({
      name: "handoff: a worker, power cuts",
      about: "What was committed stays committed, and the ticket is there.",
      profile: "weak",
      powerCuts: true,
      setup: (ports) => plant(ports, publication("an order")),
      actors: { ada: worker(steps) },
    }),
  ];
}
