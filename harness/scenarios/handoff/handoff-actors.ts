// The processes of hand-off scenarios: what they publish, claim, commit and give back.
import { parentOf } from "../../../src/durable/publish/directory.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import { Box } from "../../../src/handoff/box/box.ts";
import { claimNext, type ClaimedTicket } from "../../../src/handoff/consume/claim.ts";
import { StagedOutputs } from "../../../src/handoff/consume/outputs.ts";
import { checkPayload } from "../../../src/handoff/consume/payload-check.ts";
import { publishSent } from "../../../src/handoff/consume/sent.ts";
import { archive, commitResult, failPermanently } from "../../../src/handoff/consume/settle.ts";
import { findCommitted, type LedgerEntry } from "../../../src/handoff/ledger/ledger.ts";
import type { Publication } from "../../../src/handoff/model/publication.ts";
import { publish } from "../../../src/handoff/publish/publisher.ts";
import { returnDeadTickets } from "../../../src/handoff/recover/return-tickets.ts";
import { hasErrno, isOutcomeUnknown } from "../../../src/ports/disk-error.ts";
import { actor, type Actor, type ActorContext } from "../../../src/testing/explorer/scenario.ts";
import { declareDead, holdersBut, openBox } from "./handoff-world.ts";

/** The steps of the protocol: the real ones, or a known-wrong variant. */
export interface Steps {
  readonly publish: typeof publish;
  readonly claimNext: typeof claimNext;
  readonly commitResult: typeof commitResult;
  readonly reap: (box: Box) => Promise<unknown>;
  readonly archive: (box: Box, claim: ClaimedTicket, entry: LedgerEntry) => Promise<unknown>;
  /** Publishes the tickets that were sent with the commit. */
  readonly rollForward: (box: Box, entry: LedgerEntry) => Promise<unknown>;
  /** Returns the path of the ledger entry of a key. */
  readonly ledgerOf: (box: Box, key: string) => string;
}

export const realSteps: Steps = {
  publish,
  claimNext,
  commitResult,
  reap: returnDeadTickets,
  archive,
  rollForward: (box, entry) => publishSent(box, entry, { open: async (directory) => new Box(box.ground, directory) }),
  ledgerOf: (box, key) => box.layout.ledger(key, 0),
};

/** Notes the errors that a correct process may get. */
export async function orTold({ note }: Pick<ActorContext, "note">, action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    const isTold = isHoldfastError(error, "CLAIM_LOST", "LOCK_LOST", "OUTCOME_UNKNOWN") || isOutcomeUnknown(error);
    if (!isTold && !hasErrno(error, "ENOENT")) throw error;
    note("told");
  }
}

export interface Answer {
  readonly id: string;
  readonly key: string;
  readonly duplicate: boolean;
}

/** Publishes the tickets one after the other. */
export function producer(steps: Steps, ...what: readonly Publication[]): Actor {
  return actor({
    prepare: async (context) => {
      const box = await openBox(context);
      await box.staging(await box.ground.session());
      await box.nowMs();
      return box;
    },
    run: async (context, box) => {
      for (const each of what)
        await orTold(context, async () => context.note("published", await steps.publish(box, each)));
    },
  });
}

/** Publishes all tickets at once, as `publishMany` does: the keys of all but the first share a file. */
export function busyProducer(steps: Steps, ...what: readonly Publication[]): Actor {
  return actor({
    prepare: async (context) => {
      const box = await openToWork(context);
      for (const { key } of what) if (typeof key === "string") await box.ensure(parentOf(box.layout.key(key)));
      return box;
    },
    run: async (context, box) => {
      const publishOne = (each: Publication): Promise<void> =>
        orTold(context, async () => context.note("published", await steps.publish(box, each)));
      await Promise.all(what.map(publishOne));
    },
  });
}

export interface WorkOptions {
  /** Default 3. */
  readonly attempts?: number;
  /** Adds an output file beside the result. */
  readonly hasOutput?: boolean;
  /** Only claims, and checks whether the work was done before. */
  readonly isIdle?: boolean;
  /** Sends a ticket to the box next door. */
  readonly sends?: boolean;
}

/** The box that receives sent tickets. */
export const nextDoor = "/next";

/** Opens the box and creates its directories. */
export async function openToWork(context: ActorContext): Promise<Box> {
  const box = await openBox(context);
  const session = await box.ground.session();
  await box.processing(session);
  await box.staging(session);
  // Asks the server for its time now, so that no scenario includes that step.
  await box.nowMs();
  return box;
}

/** Claims one ticket, works on it for a step, and commits. */
export function worker(steps: Steps, options: WorkOptions = {}): Actor {
  return actor({
    prepare: openToWork,
    run: (context, box) => orTold(context, async () => void (await workOnce(context, box, steps, options))),
  });
}

/** Has claimed a ticket before the scenario begins, and commits. */
export function claimant(steps: Steps, options: WorkOptions = {}): Actor {
  return actor({
    prepare: async (context) => {
      const box = await openToWork(context);
      return { box, claim: await steps.claimNext(box) };
    },
    run: (context, { box, claim }) =>
      orTold(context, async () => {
        if (claim !== undefined && !("damage" in claim)) await settle(context, box, claim, steps, options);
      }),
  });
}

/** Has claimed `count` tickets before the scenario begins, and commits all of them at once. */
export function busyClaimant(steps: Steps, count: number): Actor {
  return actor({
    prepare: async (context) => {
      const box = await openToWork(context);
      const claims: ClaimedTicket[] = [];
      for (let each = 0; each < count; each++) {
        const claim = await steps.claimNext(box);
        if (claim !== undefined && !("damage" in claim)) claims.push(claim);
      }
      return { box, claims };
    },
    run: async ({ name, note }, { box, claims }) => {
      const work = (claim: ClaimedTicket, each: number): Promise<void> =>
        orTold({ note }, () => settle({ name: `${name} ${each}`, note }, box, claim, steps, {}));
      await Promise.all(claims.map(work));
    },
  });
}

/** Has claimed a ticket before the scenario begins, and does nothing more. */
export function silentClaimant(steps: Steps): Actor {
  return actor({
    prepare: async (context) => void (await steps.claimNext(await openToWork(context))),
    run: async () => undefined,
  });
}

/** Claims a ticket and never releases it. */
export function claimer(steps: Steps): Actor {
  return actor({
    prepare: openToWork,
    run: (context, box) =>
      orTold(context, async () => {
        const claim = await steps.claimNext(box);
        if (claim !== undefined) context.note("claimed", { id: claim.name.id, claims: claim.name.claims });
      }),
  });
}

/** Gives back the tickets of dead processes, and then works. */
export function successor(steps: Steps, options: WorkOptions = {}): Actor {
  return actor({
    prepare: async (context) => {
      const box = await openToWork(context);
      return { box, others: await holdersBut(context.ports, box) };
    },
    run: async (context, { box, others }) => {
      for (const holder of others) await declareDead(context.ports, holder);
      await orTold(context, async () => {
        await steps.reap(box);
        await workOnce(context, box, steps, options);
      });
    },
  });
}

export async function workOnce(
  context: Pick<ActorContext, "name" | "note">,
  box: Box,
  steps: Steps,
  { attempts = 3, ...options }: WorkOptions = {},
): Promise<boolean> {
  const claim = await steps.claimNext(box);
  if (claim === undefined) return false;
  try {
    if ("damage" in claim) await failPermanently(box, claim, "fail", claim.damage.message);
    else if (claim.name.claims > attempts) await failPermanently(box, claim, "lost", "too many attempts");
    else await settle(context, box, claim, steps, options);
  } finally {
    box.inProgress.delete(claim.path);
  }
  return true;
}

export async function settle(
  context: Pick<ActorContext, "name" | "note">,
  box: Box,
  claim: ClaimedTicket,
  steps: Steps,
  { hasOutput = false, isIdle = false, sends = false }: WorkOptions,
): Promise<void> {
  const { manifest } = claim.ticket;
  const { id, claims } = claim.name;
  context.note("claimed", { id, claims });
  const before = await findCommitted(box, steps.ledgerOf(box, manifest.key));
  context.note("found", { id, claims, isDone: before !== undefined });
  if (isIdle) return;
  if (before === undefined) {
    // This rejects if a file is gone or differs: a broken promise, not a valid answer.
    await checkPayload(box, claim.ticket, new AbortController().signal);
    const outputs = new StagedOutputs(box, claim);
    if (hasOutput) await outputs.add("out.txt", context.name);
    if (sends) await outputs.send(`..${nextDoor}`, [["sent.txt", "for next door"]], {});
    const entry = await steps.commitResult(box, claim, context.name, outputs);
    context.note("committed", { id, claims, key: manifest.key, by: entry.committed.result });
    await steps.rollForward(box, entry);
    await steps.archive(box, claim, entry);
    return;
  }
  await steps.rollForward(box, before);
  await steps.archive(box, claim, before);
}

/** Declares all others dead, although they may only sleep, and gives back their tickets. */
export function reaper(steps: Steps, rounds = 1): Actor {
  return actor({
    prepare: async (context) => {
      const box = await openBox(context);
      return { box, others: await holdersBut(context.ports, box) };
    },
    run: async (context, { box, others }) => {
      for (const holder of others) await declareDead(context.ports, holder);
      for (let round = 0; round < rounds; round++) await orTold(context, async () => void (await steps.reap(box)));
    },
  });
}

/** Gives back the tickets of dead processes, but declares none dead. */
export function collector(steps: Steps): Actor {
  return actor({
    prepare: openToWork,
    run: (context, box) => orTold(context, async () => void (await steps.reap(box))),
  });
}

/** Runs an actor on another machine. */
export function on(machine: string, who: Actor): Actor {
  return { ...who, machine };
}

/** Opens the box only after the scenario's `meanwhile` step. */
export function fresh(who: Actor): Actor {
  return { ...who, isFresh: true };
}
