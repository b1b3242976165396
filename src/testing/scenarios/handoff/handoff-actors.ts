// The processes of hand-off scenarios: what they publish, claim and commit, and what must hold of every ticket.
import { Ground } from "../../../durable/liveness/ground.ts";
import { isHoldfastError } from "../../../errors.ts";
import { Box } from "../../../handoff/box/box.ts";
import { claimNext, type Claimed } from "../../../handoff/consume/claim.ts";
import { archive, commitResult, failForGood } from "../../../handoff/consume/settle.ts";
import { findCommitted } from "../../../handoff/ledger/ledger.ts";
import { findTicketName } from "../../../handoff/model/ticket-name.ts";
import { publish, type Publication } from "../../../handoff/publish/publisher.ts";
import { reap, recover } from "../../../handoff/recover/reap.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import type { Disk } from "../../../ports/disk.ts";
import type { Ports } from "../../../ports/ports.ts";
import {
  actor,
  mustHold,
  valuesOf,
  type Actor,
  type ActorContext,
  type Fact,
  type Scenario,
} from "../../explorer/scenario.ts";

const ground = "/ground";
export const directory = "/box";
export const leaseMs = 8000;

/** The steps of the protocol: the real ones, or a known-wrong variant. */
export interface Steps {
  readonly publish: typeof publish;
  readonly claimNext: typeof claimNext;
  readonly commitResult: typeof commitResult;
  readonly reap: typeof reap;
}

export const realSteps: Steps = { publish, claimNext, commitResult, reap };

export async function openBox(ports: Ports, lease: number = leaseMs): Promise<Box> {
  return new Box(await Ground.open(ports, ground, { leaseMs: lease }), directory);
}

export function publication(text: string, more: Partial<Publication> = {}): Publication {
  return {
    bodies: [["a.txt", text]],
    facts: { priority: 5, ...more.facts },
    records: {},
    contentTypes: {},
    ...more,
  };
}

/** A payload that is not put into the ticket. */
export const large: string = "x".repeat(65 * 1024);

/** What an honest process may be told. */
async function orTold({ note }: ActorContext, action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    if (!isHoldfastError(error, "CLAIM_LOST", "LOCK_LOST", "OUTCOME_UNKNOWN", "IO_ERROR")) throw error;
    note("told", error.code);
  }
}

interface Answer {
  readonly id: string;
  readonly key: string;
  readonly duplicate: boolean;
}

export function producer(steps: Steps, what: Publication): Actor {
  return actor({
    prepare: async ({ ports }) => await openBox(ports),
    run: async (context, box) => {
      await orTold(context, async () => context.note("published", await steps.publish(box, what)));
    },
  });
}

/** Claims one ticket, works on it for a step, and commits. */
export function worker(steps: Steps, { attempts = 3 }: { readonly attempts?: number } = {}): Actor {
  return actor({
    prepare: async ({ ports }) => await openBox(ports),
    run: async (context, box) => {
      await orTold(context, () => workOnce(context, box, steps, attempts));
    },
  });
}

export async function workOnce(context: ActorContext, box: Box, steps: Steps, attempts: number): Promise<void> {
  const claim = await steps.claimNext(box);
  if (claim === undefined) return context.note("nothing");
  if ("damage" in claim) return await failForGood(box, claim, "fail", claim.damage.message);
  context.note("claimed", { id: claim.name.id, claims: claim.name.claims });
  if (claim.name.claims > attempts) return await failForGood(box, claim, "lost", "too many attempts");
  await settle(context, box, claim, steps);
}

async function settle(context: ActorContext, box: Box, claim: Claimed, steps: Steps): Promise<void> {
  const { key } = claim.ticket.manifest;
  await mustHavePayload(box.disk, box, claim);
  const before = await findCommitted(box, box.layout.ledger(key, 0));
  if (before !== undefined) return await archive(box, claim, before);
  const entry = await steps.commitResult(box, claim, context.name);
  context.note("committed", { id: claim.name.id, key, by: entry.committed.result });
  await archive(box, claim, entry);
}

async function mustHavePayload(disk: Disk, box: Box, { ticket }: Claimed): Promise<void> {
  if (ticket.inline !== undefined) return;
  for (const { name } of ticket.manifest.files)
    mustHold(await disk.canOpen(`${box.layout.payload(ticket.manifest.id)}/${name}`), "a ticket has no payload");
}

/** Looks for the dead for longer than a lease, and gives back what they had. */
export function reaper(steps: Steps, rounds = 6): Actor {
  return actor({
    prepare: async ({ ports }) => await openBox(ports, 10 * leaseMs),
    run: async (context, box) => {
      for (let round = 0; round < rounds; round++) {
        await orTold(context, async () => {
          await steps.reap(box);
        });
        if (round + 1 < rounds) await context.ports.clock.sleep(leaseMs / 4);
      }
    },
  });
}

/** Every ticket that can be found, with the directory that it is in. */
export async function ticketsIn({ disk }: Ports): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>();
  const walk = async (path: string): Promise<void> => {
    for (const name of await disk.list(path).catch(emptyIfGone)) {
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

function emptyIfGone(error: unknown): string[] {
  if (hasErrno(error, "ENOENT", "ENOTDIR")) return [];
  throw error;
}

/**
 * After everybody is done or dead, with one who comes after them: each acknowledged ticket is there once, and its
 * payload with it; what was committed is in the ledger, as it was told.
 */
async function audit(ports: Ports, facts: readonly Fact[], isCut: boolean): Promise<void> {
  const box = await openBox(ports, 10 * leaseMs);
  // Nobody is left who could act: what they had is given back as after their death.
  for (const parent of [box.layout.stagings, box.layout.processings])
    for (const holder of await ports.disk.list(parent).catch(emptyIfGone)) await recover(box, holder);
  const tickets = await ticketsIn(ports);
  // A file system whose renames a power cut divides shows a ticket twice: then the ledger makes one of them.
  for (const [id, places] of tickets)
    mustHold(isCut || places.length === 1, `ticket ${id} is in ${places.join(" and ")}`);
  for (const { id, duplicate } of valuesOf<Answer>(facts, "published"))
    mustHold(tickets.has(id), `ticket ${id} was ${duplicate ? "said to be there" : "acknowledged"} and is lost`);
  for (const { key, by } of valuesOf<{ readonly key: string; readonly by: string }>(facts, "committed")) {
    const entry = await findCommitted(box, box.layout.ledger(key, 0));
    mustHold(entry?.committed.result === by, `the commit of ${by} was acknowledged and is lost`);
  }
  await workOff({ name: "auditor", ports, note: () => undefined }, box, [...tickets.values()].flat().length);
  await box.ground.close();
}

/** What is left can be worked off: nothing is stuck, and every payload is there. */
async function workOff(context: ActorContext, box: Box, count: number): Promise<void> {
  for (let turn = 0; turn <= count; turn++) await workOnce(context, box, realSteps, 100);
  // Between two names of one file, which a power cut can leave, a rename does nothing: the next processes do it.
  let before = box;
  for (let round = 0; round < 3; round++) {
    const next = await openBox(context.ports, 10 * leaseMs);
    await recover(next, (await before.ground.session()).holder.id);
    for (let turn = 0; turn <= count; turn++) await workOnce(context, next, realSteps, 100);
    before = next;
  }
  for (const [id, places] of await ticketsIn(context.ports))
    for (const place of places) mustHold(/^(archive|error|delayed)/.test(place), `ticket ${id} is stuck in ${place}`);
}

/** No two results are acknowledged for one key. */
export function oneCommitForAKey(facts: readonly Fact[]): void {
  const committed = valuesOf<{ readonly key: string; readonly by: string }>(facts, "committed");
  for (const { key, by } of committed)
    mustHold(!committed.some((other) => other.key === key && other.by !== by), `${key} was committed twice`);
}

export function handoffScenario(scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>): Scenario {
  const { setup, ...rest } = scenario;
  return {
    setup: async (ports) => {
      await ports.disk.mkdir(ground);
      await ports.disk.mkdir(directory);
      await setup?.(ports);
    },
    check: oneCommitForAKey,
    audit: (ports, facts) => audit(ports, facts, scenario.powerCuts === true),
    ...rest,
  };
}

/** Publishes before the scenario begins. */
export async function plant(ports: Ports, what: Publication): Promise<void> {
  const box = await openBox(ports, 100 * leaseMs);
  await publish(box, what);
  await box.ground.close();
}
