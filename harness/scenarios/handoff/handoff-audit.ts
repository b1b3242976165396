// The rules that every ticket must obey, checked against the content of the box after all actors are done or dead.
import type { Box } from "../../../src/handoff/box/box.ts";
import { findOwner } from "../../../src/handoff/box/key-file.ts";
import { findCommitted } from "../../../src/handoff/ledger/ledger.ts";
import { findTicketName } from "../../../src/handoff/model/ticket-name.ts";
import type { Publication } from "../../../src/handoff/model/publication.ts";
import { recoverHolder } from "../../../src/handoff/recover/return-tickets.ts";
import { emptyTrash } from "../../../src/handoff/operate/trash.ts";
import { hasErrno } from "../../../src/ports/disk-error.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { mustHold, valuesOf, type Fact, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import { orTold, realSteps, workOnce, type Answer, type Steps } from "./handoff-actors.ts";
import { boundsOf, declareDead, directory, holdersBut, makeWorld, openBox, plant, type Seen } from "./handoff-world.ts";

/** Finds every ticket, with the directories that contain it. */
export async function ticketsIn({ disk }: Ports): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>();
  const walk = async (path: string): Promise<void> => {
    for (const name of await namesIn(disk, path)) {
      const ticket = findTicketName(name);
      const below = `${path}/${name}`;
      if (ticket === undefined) {
        if ((await disk.stat(below)).kind === "directory") await walk(below);
      } else found.set(ticket.id, [...(found.get(ticket.id) ?? []), path.slice(directory.length + 1)]);
    }
  };
  for (const state of ["incoming", "delayed", "lanes", "processing", "archive", "error", "parked"])
    await walk(`${directory}/${state}`);
  return found;
}

async function namesIn(disk: Ports["disk"], path: string): Promise<string[]> {
  try {
    return await disk.list(path);
  } catch (error) {
    if (hasErrno(error, "ENOENT", "ENOTDIR")) return [];
    throw error;
  }
}

async function filesIn({ disk }: Ports, parent: string): Promise<string[]> {
  const shards = (await namesIn(disk, parent)).map((shard) => `${parent}/${shard}`);
  return (
    await Promise.all(shards.map(async (shard) => (await namesIn(disk, shard)).map((name) => `${shard}/${name}`)))
  ).flat();
}

interface Commit {
  readonly key: string;
  readonly by: string;
}

interface Claims {
  readonly id: string;
  readonly claims: number;
}

/**
 * A ticket is claimed once. No key has two acknowledged results. No earlier claim commits a ticket that was given
 * back.
 */
export function oneHolder(facts: readonly Fact[]): void {
  const claimed = valuesOf<Claims>(facts, "claimed").map(({ id, claims }) => `${id} ${claims}`);
  mustHold(new Set(claimed).size === claimed.length, "two processes have one claim");
  const committed = valuesOf<Commit & Claims>(facts, "committed");
  for (const { key, by } of committed)
    mustHold(!committed.some((other) => other.key === key && other.by !== by), `${key} was committed twice`);
  for (const { id, claims, isDone } of valuesOf<Claims & { readonly isDone: boolean }>(facts, "found"))
    mustHold(
      isDone || !committed.some((commit) => commit.id === id && commit.claims < claims),
      "a claim was committed after its ticket had gone back",
    );
}

export interface AuditOptions {
  /** True if a power cut may split a rename, so that a ticket appears twice. The ledger then makes one of them. */
  readonly isCut?: boolean;
  readonly steps?: Steps;
  /** The tickets published before the scenario began. */
  readonly planted?: readonly Answer[];
}

/**
 * Each acknowledged ticket exists once, with its payload. The ledger has each commit as it was acknowledged. The
 * remaining tickets can be worked off, and then the ledger has each key. Nothing is left that belongs to no ticket.
 */
export async function audit(
  ports: Ports,
  facts: readonly Fact[],
  { isCut = false, steps = realSteps, planted = [] }: AuditOptions,
): Promise<void> {
  const box = await openBox({ name: "auditor", ports });
  await recoverAll(ports, box);
  const tickets = await ticketsIn(ports);
  for (const [id, places] of tickets)
    mustHold(isCut || places.length === 1, `ticket ${id} is in ${places.join(" and ")}`);
  const published = [...planted, ...valuesOf<Answer>(facts, "published")];
  for (const { id, duplicate } of published)
    mustHold(tickets.has(id), `ticket ${id} was ${duplicate ? "said to be there" : "acknowledged"} and is lost`);
  for (const path of await filesIn(ports, `${directory}/keys`)) {
    const id = (await findOwner(box, path))?.manifest.id ?? "";
    mustHold(tickets.has(id), `a key names ticket ${id}, which is not there`);
  }
  for (const { key, by } of valuesOf<Commit>(facts, "committed")) {
    const entry = await findCommitted(box, steps.ledgerOf(box, key));
    mustHold(entry?.committed.result === by, `the commit of ${by} was acknowledged and is lost`);
  }
  await workOff(ports, box, steps, [...tickets.values()].flat().length);
  for (const { key } of published) {
    const entry = await findCommitted(box, steps.ledgerOf(box, key));
    mustHold(entry?.committed.key === key, `${key} was acknowledged, and is not in the ledger`);
  }
  // The auditor has worked too, and leaves now.
  for (const holder of await namesIn(ports.disk, box.layout.stagings)) await recoverHolder(box, holder);
  if (!isCut) await mustLeaveNothing(ports);
  await box.ground.close();
}

/** Gives back the tickets of every process, as after its death: no process is left that could act. */
export async function recoverAll(ports: Ports, box: Box): Promise<void> {
  const { disk } = ports;
  for (const holder of await holdersBut(ports, box)) {
    await declareDead(ports, holder);
    mustHold(await box.ground.settle(holder), `what ${holder} has left in its temp directory cannot be removed`);
  }
  for (const parent of [box.layout.stagings, box.layout.processings])
    for (const holder of await namesIn(disk, parent)) await recoverHolder(box, holder);
  await emptyTrash(box);
}

/** Works off the remaining tickets: nothing is stuck, and every payload exists. */
async function workOff(ports: Ports, box: Box, steps: Steps, count: number): Promise<void> {
  const silent = { name: "auditor", note: () => undefined };
  // A power cut can leave two names of one file. A rename between them does nothing, so the next process does the work.
  let before = box;
  for (let round = 0; round < 3; round++) {
    for (let turn = 0; turn <= count; turn++)
      await orTold(silent, async () => void (await workOnce(silent, before, steps, { attempts: 100 })));
    if ((await stuckIn(ports)).length === 0) return;
    const next = await openBox({ name: "auditor", ports });
    await recoverHolder(next, (await before.ground.session()).holder.id);
    before = next;
  }
  mustHold(false, (await stuckIn(ports)).join(", "));
}

async function stuckIn(ports: Ports): Promise<string[]> {
  return [...(await ticketsIn(ports))].flatMap(([id, places]) =>
    places
      .filter((place) => !/^(archive|error|delayed)/.test(place))
      .map((place) => `ticket ${id} is stuck in ${place}`),
  );
}

/** No payload exists without its ticket, nothing is staged, and the trash is empty. */
async function mustLeaveNothing(ports: Ports): Promise<void> {
  const tickets = await ticketsIn(ports);
  const { disk } = ports;
  for (const shard of await namesIn(disk, `${directory}/data`))
    for (const id of await namesIn(disk, `${directory}/data/${shard}`))
      mustHold(tickets.has(id), `the payload of ${id} is left, and there is no such ticket`);
  const left = [...(await namesIn(disk, `${directory}/staging`)), ...(await namesIn(disk, `${directory}/trash`))];
  mustHold(left.length === 0, `${left.join(" and ")} is left`);
}

export interface HandoffScenario extends Scenario, Seen {
  /** The tickets published before the scenario begins. */
  readonly tickets?: readonly Publication[];
}

export function handoffScenario(scenario: HandoffScenario, steps: Steps = realSteps): Scenario {
  const { setup, watched, areSettled, removesPayloads, isRemoved, tickets = [], ...rest } = scenario;
  let planted: readonly Answer[] = [];
  return {
    ...boundsOf({ watched, areSettled, removesPayloads, isRemoved }),
    setup: async (ports) => {
      await makeWorld(ports);
      planted = await plant(ports, tickets);
      await setup?.(ports);
    },
    check: oneHolder,
    audit: (ports, facts) => audit(ports, facts, { isCut: scenario.powerCuts === true, steps, planted }),
    ...rest,
  };
}
