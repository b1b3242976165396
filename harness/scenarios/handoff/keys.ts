// Scenarios of keys: a key lives as long as its ticket or its ledger entry, and never longer.
import { encodeRecord } from "../../../src/format/record.ts";
import type { Box } from "../../../src/handoff/box/box.ts";
import { findOwner } from "../../../src/handoff/box/key-file.ts";
import { expireEntry, finishExpired } from "../../../src/handoff/ledger/expiry.ts";
import { committedKind, type Committed } from "../../../src/handoff/ledger/ledger.ts";
import { findTicketName, formatTicketName, type TicketName } from "../../../src/handoff/model/ticket-name.ts";
import { settleTicket } from "../../../src/handoff/publish/staged.ts";
import { ticketsIn as foundIn } from "../../../src/handoff/operate/tickets.ts";
import { emptyTrash, removeTicket } from "../../../src/handoff/operate/trash.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { actor, mustHold, valuesOf, type Actor, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import { openToWork, orTold, producer, realSteps, workOnce, type Answer } from "./handoff-actors.ts";
import { handoffScenario, recoverAll, ticketsIn } from "./handoff-audit.ts";
import { openBox, plant, publication } from "./handoff-world.ts";

const key = "order 1";

export interface KeySteps {
  /** Removes the ledger entry of the key. */
  readonly expire: (box: Box, path: string) => Promise<unknown>;
  /** Publishes or discards a staged ticket of a dead process. */
  readonly settle: (box: Box, staged: string, name: TicketName) => Promise<unknown>;
}

export const realKeySteps: KeySteps = { expire: expireEntry, settle: settleTicket };

/** Another program's ticket was finished under the key. A later ticket with that key was archived as a duplicate. */
async function plantDuplicate(ports: Ports): Promise<void> {
  const box = await openBox({ name: "setup", ports });
  const committed: Committed = {
    key,
    replays: 0,
    id: "0".repeat(36),
    claims: 1,
    holder: "",
    at: new Date(0).toISOString(),
    outputs: [],
    sent: [],
  };
  const path = box.layout.ledger(key, 0);
  await box.ensure(path.slice(0, path.lastIndexOf("/")));
  await box.disk.createFile(path, encodeRecord(committedKind, committed), { sync: true });
  await plant(ports, [publication("an order", { key })]);
  await workOnce({ name: "setup", note: () => undefined }, box, realSteps);
  await box.disk.rmdir(box.layout.processing((await box.ground.session()).holder.id));
  await box.ground.close();
}

/** The same, but the ticket was removed: only the entry still keeps the key. */
async function plantKept(ports: Ports): Promise<void> {
  await plantDuplicate(ports);
  const box = await openBox({ name: "setup", ports });
  await removeTickets(box);
  await box.ground.close();
}

/** A producer won the key and died. A process that releases keys moved that key to the trash and died too. */
async function plantTrashed(ports: Ports): Promise<void> {
  await plant(ports, [publication("an order", { key })]);
  const { disk } = ports;
  const box = await openBox({ name: "setup", ports });
  const path = box.layout.key(key);
  const stagedBy = (await findOwner(box, path))?.stagedBy ?? "";
  await box.ensure(box.layout.staging(stagedBy));
  for await (const { path: from, name } of foundIn(box, "incoming"))
    await disk.rename(from, `${box.layout.staging(stagedBy)}/${formatTicketName(name)}`);
  await disk.rename(path, `${await box.ensure(box.layout.trash)}/key-${"0".repeat(26)}`);
  await box.ground.close();
}

async function removeTickets(box: Box): Promise<void> {
  for await (const found of foundIn(box, "archive")) await removeTicket(box, found);
}

const retainer: Actor = actor({
  prepare: openToWork,
  run: (context, box) => orTold(context, () => removeTickets(box)),
});

function expirer({ expire }: KeySteps): Actor {
  return actor({
    prepare: openToWork,
    run: (context, box) => orTold(context, async () => void (await expire(box, box.layout.ledger(key, 0)))),
  });
}

function sweeper({ settle }: KeySteps): Actor {
  return actor({
    prepare: openToWork,
    run: (context, box) =>
      orTold(context, async () => {
        for (const holder of await box.names(box.layout.stagings))
          for (const text of await box.names(box.layout.staging(holder))) {
            const name = findTicketName(text);
            if (name !== undefined) await settle(box, `${box.layout.staging(holder)}/${text}`, name);
          }
      }),
  });
}

const releaser: Actor = actor({
  prepare: openToWork,
  run: (context, box) => orTold(context, () => emptyTrash(box)),
});

/** Returns the ticket that owns the key after other processes have finished the work of the dead. */
async function ownerLeft(box: Box, { expire }: KeySteps): Promise<string | undefined> {
  await finishExpired(box);
  await emptyTrash(box);
  await removeTickets(box);
  await expire(box, box.layout.ledger(key, 0));
  return (await findOwner(box, box.layout.key(key)))?.manifest.id;
}

const isRemoved = (path: string): boolean => /^\/box\/(keys|ledger|archive|notes)\//.test(path);

export function keyScenarios(steps: KeySteps = realKeySteps): Scenario[] {
  return [
    handoffScenario({
      name: "handoff: a ticket and the ledger entry of its key are removed by two processes",
      size: "medium",
      about: "The process that comes last releases the key, even if one of the two is killed in between.",
      setup: plantDuplicate,
      actors: { ret: retainer, exp: expirer(steps) },
      killsMax: 1,
      isRemoved,
      audit: async (ports) => {
        const box = await openBox({ name: "auditor", ports });
        await recoverAll(ports, box);
        const owner = await ownerLeft(box, steps);
        mustHold(owner === undefined, "the key has outlived its ticket and its ledger entry");
        await box.ground.close();
      },
    }),
    handoffScenario({
      name: "handoff: the ledger entry of a key is removed, and a producer publishes with it",
      size: "medium",
      about: "The producer's answer names a duplicate, or its ticket exists and has the key.",
      setup: plantKept,
      actors: { exp: expirer(steps), ada: producer(realSteps, publication("the next", { key })) },
      killsMax: 1,
      isRemoved,
      audit: async (ports, facts) => {
        const box = await openBox({ name: "auditor", ports });
        await recoverAll(ports, box);
        const owner = await ownerLeft(box, steps);
        const tickets = await ticketsIn(ports);
        mustHold(owner === undefined || tickets.has(owner), "the key has outlived its ticket and its ledger entry");
        for (const { id, duplicate } of valuesOf<Answer>(facts, "published")) {
          mustHold(duplicate || tickets.has(id), `ticket ${id} was acknowledged and is lost`);
          mustHold(duplicate || owner === id, `ticket ${id} waits, and its key was released`);
        }
        await box.ground.close();
      },
    }),
    handoffScenario({
      name: "handoff: a key is put back while the staged ticket that has it is settled",
      about: "The ticket is published, because other producers were told that it is.",
      setup: plantTrashed,
      actors: { rel: releaser, swp: sweeper(steps) },
      killsMax: 1,
      isRemoved,
      audit: async (ports) => {
        const box = await openBox({ name: "auditor", ports });
        await recoverAll(ports, box);
        mustHold((await ticketsIn(ports)).size === 1, "a ticket that had won its key is lost");
        await box.ground.close();
      },
    }),
  ];
}
