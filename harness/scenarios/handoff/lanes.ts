// Scenarios of lanes: tickets of one group keep the order of publishes that do not overlap, and one is worked on at a
// time.
import { laneOf } from "../../../src/handoff/box/layout.ts";
import { Box } from "../../../src/handoff/box/box.ts";
import { KeptLeases, type LeaseTaker } from "../../../src/handoff/consume/kept-leases.ts";
import { claimInLane } from "../../../src/handoff/consume/lanes.ts";
import { findTicketName } from "../../../src/handoff/model/ticket-name.ts";
import type { Publication } from "../../../src/handoff/model/publication.ts";
import { directoryLeases } from "../../../src/part/leases.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import { beginUntilHalt, haltingAtLink } from "../../../src/testing/explorer/halfway.ts";
import {
  actor,
  mustHold,
  type Actor,
  type ActorContext,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";
import { on, openToWork, orTold, realSteps } from "./handoff-actors.ts";
import { handoffScenario } from "./handoff-audit.ts";
import { directory, publication } from "./handoff-world.ts";

const group = "customer 7";
const lane = laneOf(group);

export interface LaneSteps {
  readonly nextInLane: (box: Box) => Promise<number>;
  readonly publish: typeof realSteps.publish;
  readonly openLeases: (context: ActorContext, box: Box) => LeaseTaker;
}

export const realLaneSteps: LaneSteps = {
  nextInLane: (box) => Box.prototype.nextInLane.call(box, lane),
  publish: realSteps.publish,
  openLeases: (_context, box) => directoryLeases(directory, async () => box.ground),
};

function inGroup(text: string, key?: string): Publication {
  return publication(text, { facts: { priority: 5, group }, key });
}

/** Publishes one ticket after the other. Each uses its text as its key. */
function keyedProducer(steps: LaneSteps, ...texts: readonly string[]): Actor {
  return actor({
    prepare: async (context) => await openToWork(context),
    run: async (context, box) => {
      for (const text of texts)
        await orTold(context, async () =>
          context.note("published", (await steps.publish(box, inGroup(text, text))).id),
        );
    },
  });
}

/** Has won its key when the scenario begins, and goes on to take its place in the lane. */
function keyWinner(steps: LaneSteps, text: string): Actor {
  return actor({
    prepare: (context) =>
      beginUntilHalt(async (halt) => {
        const ports = { ...context.ports, disk: haltingAtLink(context.ports.disk, `${directory}/keys`, halt) };
        return await steps.publish(await openToWork({ ...context, ports }), inGroup(text, text));
      }),
    run: (context, goOn) => orTold(context, async () => context.note("published", (await goOn()).id)),
  });
}

/** Repeats a publish that another process has begun, and checks the lane when it gets its answer. */
function repeater(steps: LaneSteps, text: string): Actor {
  return actor({
    prepare: async (context) => await openToWork(context),
    run: async (context, box) => {
      await orTold(context, async () => {
        const { id } = await steps.publish(box, inGroup(text, text));
        context.note("placed", (await ranksIn(context.ports.disk)).has(id));
      });
    },
  });
}

function mustBePlaced(facts: readonly Fact[]): void {
  for (const { what, value } of facts)
    mustHold(what !== "placed" || value === true, "it was told, and has no place yet");
}

/** The first of two tickets that one producer published has the lower place. */
async function mustFollow({ disk }: ActorContext["ports"], facts: readonly Fact[]): Promise<void> {
  const [first, second] = facts.filter(({ actor: by, what }) => by === "bob" && what === "published");
  if (first === undefined || second === undefined) return;
  const ranks = await ranksIn(disk);
  const [one, other] = [first, second].map(({ value }) => ranks.get(value as string) ?? NaN);
  mustHold((one ?? NaN) < (other ?? NaN), "a ticket is before one that was published earlier");
}

async function ranksIn(disk: Disk): Promise<Map<string, number>> {
  const ranks = new Map<string, number>();
  for (const text of await disk.list(`${directory}/lanes/${String(lane).padStart(2, "0")}/incoming`)) {
    const name = findTicketName(text);
    if (name?.rank !== undefined) ranks.set(name.id, name.rank);
  }
  return ranks;
}

/** Publishes into the group, and notes when it begins and when it is acknowledged. */
function orderedProducer(steps: LaneSteps, text: string): Actor {
  return actor({
    prepare: async (context) => {
      const box = await openToWork(context);
      // Opens the order of the lane. An unused place does no harm.
      await box.nextInLane(lane);
      Object.defineProperty(box, "nextInLane", { value: () => steps.nextInLane(box) });
      return box;
    },
    run: async (context, box) => {
      // Takes a step before the beginning, so that one publish may begin after another has ended.
      await context.ports.disk.canOpen(`${directory}/paused`);
      context.note("begins");
      await orTold(context, async () => context.note("published", await realSteps.publish(box, inGroup(text))));
    },
  });
}

/** A ticket acknowledged before another publish began has the lower place. */
async function mustBeInOrder({ disk }: ActorContext["ports"], facts: readonly Fact[]): Promise<void> {
  const ranks = await ranksIn(disk);
  const idOf = (who: string): string | undefined =>
    (
      facts.find(({ actor: by, what }) => by === who && what === "published")?.value as
        { readonly id: string } | undefined
    )?.id;
  for (const [at, { actor: later, what }] of facts.entries()) {
    if (what !== "begins") continue;
    for (const { actor: earlier, what: happened } of facts.slice(0, at)) {
      const [one, other] = [idOf(earlier), idOf(later)];
      if (happened !== "published" || one === undefined || other === undefined) continue;
      mustHold(
        (ranks.get(one) ?? NaN) < (ranks.get(other) ?? NaN),
        "a ticket is before one that was published earlier",
      );
    }
  }
}

/** Claims the first ticket of the lane, holds it for a step, and gives the lane up. */
function laneWorker(steps: LaneSteps): Actor {
  return actor({
    prepare: async (context) => {
      const box = await openToWork(context);
      return { box, leases: new KeptLeases(steps.openLeases(context, box), context.ports.clock) };
    },
    run: async (context, { box, leases }) => {
      await orTold(context, async () => {
        const found = await claimInLane(box, leases, await box.ground.session(), lane);
        if (found === undefined) return;
        context.note("enters");
        await context.ports.disk.canOpen(`${directory}/paused`);
        context.note("leaves");
        await leases.release(found.lease);
      });
    },
  });
}

function oneAtATime(facts: readonly Fact[]): void {
  let inside = 0;
  for (const { what } of facts) {
    if (what === "enters") inside++;
    if (what === "leaves") inside--;
    mustHold(inside <= 1, "two workers are in one group");
  }
}

const otherLanes = new RegExp(`^${directory}/lanes/(?!${String(lane).padStart(2, "0")})`);

export function laneScenarios(steps: LaneSteps = realLaneSteps): Scenario[] {
  const working = handoffScenario({
    name: "handoff: two workers in a lane",
    about: "Only one worker at a time has a ticket of the group.",
    size: "large",
    tickets: [inGroup("1"), inGroup("2")],
    watched: ["ada", "bob"],
    actors: { ada: laneWorker(steps), bob: laneWorker(steps) },
    check: oneAtATime,
    audit: async () => undefined,
  });
  return [
    handoffScenario({
      name: "handoff: the order of a lane, from two machines",
      about: "A publish that begins after another was acknowledged gets the later place, whatever the clocks say.",
      size: "medium",
      actors: { ada: on("m1", orderedProducer(steps, "1")), bob: on("m2", orderedProducer(steps, "2")) },
      clockJumps: { ms: -100_000, count: 1 },
      audit: mustBeInOrder,
    }),
    handoffScenario({
      name: "handoff: a publish into a lane is repeated when the first one has its key",
      about:
        "The first publisher takes its place in the lane or dies before. When the other gets its answer, the ticket has its place.",
      size: "medium",
      actors: { ada: keyWinner(steps, "1"), bob: repeater(steps, "1") },
      killsMax: 1,
      mortal: ["ada"],
      check: mustBePlaced,
      audit: async () => undefined,
    }),
    handoffScenario({
      name: "handoff: a publish into a lane is repeated while the first one dies or is on its way",
      about: "The repeated publish answers that the key was published, and the next publish gets the later place.",
      size: "large",
      actors: { ada: keyedProducer(steps, "1"), bob: keyedProducer(steps, "1", "2") },
      killsMax: 1,
      mortal: ["ada"],
      audit: mustFollow,
    }),
    {
      ...working,
      isUnseen: (operation, path) => otherLanes.test(path) || working.isUnseen?.(operation, path) === true,
    },
  ];
}
