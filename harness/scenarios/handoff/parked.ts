// Scenarios of claims that outlive their process, and of tickets that are sent with a commit.
import { parentOf } from "../../../src/durable/publish/directory.ts";
import { Box } from "../../../src/handoff/box/box.ts";
import { findParked, park, unpark } from "../../../src/handoff/consume/parked.ts";
import { findCommitted } from "../../../src/handoff/ledger/ledger.ts";
import { findTicketName } from "../../../src/handoff/model/ticket-name.ts";
import { enterDue } from "../../../src/handoff/recover/due.ts";
import { recoverHolder } from "../../../src/handoff/recover/return-tickets.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { actor, mustHold, type Actor, type Fact, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import { nextDoor, openToWork, orTold, realSteps, settle, worker, type Steps } from "./handoff-actors.ts";
import { audit, handoffScenario } from "./handoff-audit.ts";
import { openBox, plant, publication } from "./handoff-world.ts";

async function plantParked(ports: Ports, parkedMs: number): Promise<void> {
  await plant(ports, [publication("an order")]);
  const box = await openBox({ name: "setup", ports });
  const claim = await realSteps.claimNext(box);
  if (claim === undefined || "damage" in claim) throw new Error("there is no ticket to park");
  await park(box, claim, parkedMs);
  await box.disk.rmdir(parentOf(claim.path));
  await box.ground.close();
}

/** Resumes the parked claim, as `handoff ack` does. */
function resumer(steps: Steps): Actor {
  return actor({
    prepare: openToWork,
    run: async (context, box) =>
      await orTold(context, async () => {
        const [parked] = await findParked(box);
        if (parked === undefined) return;
        const claim = await unpark(box, await box.ground.session(), parked.name.id, async () => undefined);
        await settle(context, box, claim, steps, {});
      }),
  });
}

/** Gives back parked claims whose time is over, and works on them. */
function late(steps: Steps): Actor {
  return actor({
    prepare: openToWork,
    run: async (context, box) => {
      await orTold(context, async () => void (await enterDue(box)));
      await orTold(context, async () => {
        const claim = await steps.claimNext(box);
        if (claim !== undefined && !("damage" in claim)) await settle(context, box, claim, steps, {});
      });
    },
  });
}

/** A ticket sent with a commit is in the next box exactly once. */
async function mustBeSentOnce(ports: Ports, facts: readonly Fact[]): Promise<void> {
  await audit(ports, facts, { steps: realSteps });
  const box = await openBox({ name: "auditor", ports });
  const entry = await findCommitted(box, box.layout.ledger("order 1", 0));
  // Recovers as a consumer of the next box does.
  const next = new Box(box.ground, nextDoor);
  for (const holder of await ports.disk.list(next.layout.stagings).catch((): string[] => []))
    await recoverHolder(next, holder);
  const found: string[] = [];
  const walk = async (path: string): Promise<void> => {
    for (const name of await ports.disk.list(path).catch((): string[] => []))
      if (findTicketName(name) === undefined) await walk(`${path}/${name}`);
      else found.push(name);
  };
  await walk(`${nextDoor}/incoming`);
  await box.ground.close();
  // A worker that was killed before its commit has sent nothing, and the auditor sends nothing.
  const sent = entry?.committed.sent.length;
  mustHold(found.length === sent, `${found.length} tickets were sent, and the ledger has ${sent}`);
}

export function parkedScenarios(steps: Steps = realSteps): Scenario[] {
  return [
    handoffScenario({
      name: "handoff: two processes go on with a parked claim, one is killed",
      about: "One process has the claim. If it dies, the ticket returns to the queue.",
      setup: (ports) => plantParked(ports, 60_000),
      actors: { ada: resumer(steps), bob: resumer(steps) },
      killsMax: 1,
      mortal: ["ada"],
    }),
    handoffScenario({
      name: "handoff: a parked claim whose time is over, and a process that goes on with it",
      about: "The claim continues, or its ticket returns to the queue and is claimed anew. One result counts.",
      setup: (ports) => plantParked(ports, 0),
      actors: { ada: resumer(steps), bob: late(steps) },
    }),
    handoffScenario({
      name: "handoff: a worker that sends a ticket is killed, and the next one",
      about: "One of the two publishes the ticket that was sent with the commit, exactly once.",
      setup: async (ports) => {
        await ports.disk.mkdir(nextDoor);
        await plant(ports, [publication("an order", { key: "order 1" })]);
      },
      actors: { ada: worker(steps, { sends: true }) },
      killsMax: 1,
      mortal: ["ada"],
      audit: mustBeSentOnce,
    }),
  ];
}
