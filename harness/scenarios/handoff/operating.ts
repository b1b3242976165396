// Scenarios of ticket upkeep: retention, replay, delays, and directories that are created and removed.
import { minuteName } from "../../../src/handoff/box/layout.ts";
import { checkPayload } from "../../../src/handoff/consume/payload-check.ts";
import { replay } from "../../../src/handoff/operate/replay.ts";
import { collect } from "../../../src/handoff/operate/collect.ts";
import { enterDue } from "../../../src/handoff/recover/due.ts";
import type { Box } from "../../../src/handoff/box/box.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { actor, mustHold, type Actor, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import { openToWork, orTold, producer, realSteps, workOnce } from "./handoff-actors.ts";
import { handoffScenario, ticketsIn } from "./handoff-audit.ts";
import { directory, large, openBox, plant, publication } from "./handoff-world.ts";

const delayMs = 60_000;

export interface OperateSteps {
  readonly claimNext: typeof realSteps.claimNext;
  readonly collect: (box: Box) => Promise<unknown>;
}

export const realOperateSteps: OperateSteps = {
  claimNext: realSteps.claimNext,
  // The limit lies in the future, so every finished ticket expires.
  collect: (box) => collect(box, { archiveMs: -200_000_000 }),
};

async function plantDone(ports: Ports): Promise<void> {
  await plant(ports, [publication(large)]);
  const box = await openBox({ name: "setup", ports });
  await workOnce({ name: "setup", note: () => undefined }, box, realSteps);
  await box.disk.rmdir(box.layout.processing((await box.ground.session()).holder.id));
  await box.ground.close();
}

function retainer({ collect: remove }: OperateSteps): Actor {
  return actor({ prepare: openToWork, run: async (_context, box) => void (await remove(box)) });
}

/** Replays the ticket, and checks its files as a consumer does. */
const replayer: Actor = actor({
  prepare: openToWork,
  run: async ({ note }, box) => {
    if ((await replay(box, { from: "archive" })) === 0) return note("too late");
    const claim = await realSteps.claimNext(box);
    if (claim === undefined || "damage" in claim) throw new Error("the ticket was replayed and is not there");
    await checkPayload(box, claim.ticket, new AbortController().signal);
    note("replayed");
  },
});

/** A ticket and its payload both exist, or neither does. */
async function mustBeWhole(ports: Ports): Promise<void> {
  const tickets = await ticketsIn(ports);
  const names = async (path: string): Promise<string[]> => await ports.disk.list(path).catch(() => []);
  const payloads = (
    await Promise.all((await names(`${directory}/data`)).map((shard) => names(`${directory}/data/${shard}`)))
  ).flat();
  mustHold(
    [...tickets.keys()].join() === payloads.join(),
    `there is ticket ${[...tickets.keys()].join()} and payload ${payloads.join()}`,
  );
}

/** Moves delayed tickets when they are due. */
const mover: Actor = actor({
  prepare: openToWork,
  run: async (context, box) => {
    await context.ports.clock.sleep(delayMs);
    await orTold(context, async () => void (await enterDue(box)));
  },
});

/** Makes two claims in one process at the same time. */
function twofold({ claimNext }: OperateSteps): Actor {
  return actor({
    prepare: openToWork,
    run: async ({ note }, box) => {
      const claims = await Promise.all([claimNext(box), claimNext(box)]);
      for (const claim of claims)
        if (claim !== undefined) note("claimed", { id: claim.name.id, claims: claim.name.claims });
    },
  });
}

/** Removes the directory of the minute, as a consumer does when the minute has passed. */
const remover: Actor = actor({
  run: async ({ ports: { disk, clock } }) => {
    const minute = `${directory}/incoming/5/${minuteName(clock.wallMs())}`;
    for (let round = 0; round < 2; round++) await disk.rmdir(minute).catch(() => undefined);
  },
});

export function operateScenarios(steps: OperateSteps = realOperateSteps): Scenario[] {
  return [
    handoffScenario({
      name: "handoff: retention against replay",
      size: "medium",
      about: "Retention removes the ticket with its payload, or replay brings both back.",
      setup: plantDone,
      removesPayloads: true,
      actors: { ret: retainer(steps), rep: replayer },
      isRemoved: (path) => /\/(notes|archive)\//.test(path),
      audit: mustBeWhole,
    }),
    handoffScenario({
      name: "handoff: a ticket that is due, and two processes that move it",
      about: "The ticket reaches the queue exactly once.",
      tickets: [publication("an order", { delayMs })],
      actors: { ada: mover, bob: mover },
      killsMax: 1,
      mortal: ["ada"],
    }),
    handoffScenario({
      name: "handoff: two claims of one process",
      about:
        "One claim gets the ticket. The other does not take it for its own when it finds the ticket in the process's directory.",
      tickets: [publication("an order")],
      actors: { ada: twofold(steps) },
    }),
    handoffScenario({
      name: "handoff: a directory that is removed under a publisher",
      about: "The publisher creates the directory again, and the ticket is in it.",
      actors: { ada: producer(realSteps, publication("an order")), rem: remover },
    }),
  ];
}
