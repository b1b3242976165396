// Scenarios of what happens to tickets beside work: retention, replay, delays, and directories that come and go.
import { minuteName } from "../../../handoff/box/layout.ts";
import { checkPayload } from "../../../handoff/consume/payload-check.ts";
import { replay } from "../../../handoff/operate/replay.ts";
import { collect } from "../../../handoff/operate/collect.ts";
import { enterDue } from "../../../handoff/recover/due.ts";
import type { Box } from "../../../handoff/box/box.ts";
import type { Ports } from "../../../ports/ports.ts";
import { actor, mustHold, type Actor, type Scenario } from "../../explorer/scenario.ts";
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
  // Older than the future: whatever is finished goes.
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

/** Brings the ticket back, and has its files checked as a consumer does. */
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

/** A ticket and its payload are there, or neither is. */
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

/** Moves what is due when it is. */
const mover: Actor = actor({
  prepare: openToWork,
  run: async (context, box) => {
    await context.ports.clock.sleep(delayMs);
    await orTold(context, async () => void (await enterDue(box)));
  },
});

/** Two claims of one process at the same time. */
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

/** Removes the directory of the minute, as a consumer does when the minute is past. */
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
      about: "The ticket is removed with its payload, or comes back with it.",
      setup: plantDone,
      removesPayloads: true,
      actors: { ret: retainer(steps), rep: replayer },
      isRemoved: (path) => /\/(notes|archive)\//.test(path),
      audit: mustBeWhole,
    }),
    handoffScenario({
      name: "handoff: a ticket that is due, and two processes that move it",
      about: "It comes to where consumers look, once.",
      tickets: [publication("an order", { delayMs })],
      actors: { ada: mover, bob: mover },
      killsMax: 1,
      mortal: ["ada"],
    }),
    handoffScenario({
      name: "handoff: two claims of one process",
      about: "One of them has the ticket: the other one does not take it for its own because it finds it there.",
      tickets: [publication("an order")],
      actors: { ada: twofold(steps) },
    }),
    handoffScenario({
      name: "handoff: a directory that is removed under a publisher",
      about: "The publisher makes it again, and the ticket is in it.",
      actors: { ada: producer(realSteps, publication("an order")), rem: remover },
    }),
  ];
}
