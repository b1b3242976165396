// The processes of hand-off scenarios: what they publish, claim, commit and give back.
import { isHoldfastError } from "../../../errors.ts";
import { Box } from "../../../handoff/box/box.ts";
import { claimNext, type Claimed } from "../../../handoff/consume/claim.ts";
import { StagedOutputs } from "../../../handoff/consume/outputs.ts";
import { checkPayload } from "../../../handoff/consume/payload-check.ts";
import { publishSent } from "../../../handoff/consume/sent.ts";
import { archive, commitResult, failForGood } from "../../../handoff/consume/settle.ts";
import { findCommitted, type LedgerEntry } from "../../../handoff/ledger/ledger.ts";
import { publish, type Publication } from "../../../handoff/publish/publisher.ts";
import { reap } from "../../../handoff/recover/reap.ts";
import { hasErrno, isOutcomeUnknown } from "../../../ports/disk-error.ts";
import { actor, type Actor, type ActorContext } from "../../explorer/scenario.ts";
import { declareDead, holdersBut, openBox } from "./handoff-world.ts";

/** The steps of the protocol: the real ones, or a known-wrong variant. */
export interface Steps {
  readonly publish: typeof publish;
  readonly claimNext: typeof claimNext;
  readonly commitResult: typeof commitResult;
  readonly reap: (box: Box) => Promise<unknown>;
  readonly archive: (box: Box, claim: Claimed, entry: LedgerEntry) => Promise<unknown>;
  /** Publishes what was sent with the commit. */
  readonly rollForward: (box: Box, entry: LedgerEntry) => Promise<unknown>;
  /** Where a process keeps what was committed under a key. */
  readonly ledgerOf: (box: Box, key: string) => string;
}

export const realSteps: Steps = {
  publish,
  claimNext,
  commitResult,
  reap,
  archive,
  rollForward: (box, entry) => publishSent(box, entry, { open: async (directory) => new Box(box.ground, directory) }),
  ledgerOf: (box, key) => box.layout.ledger(key, 0),
};

/** What an honest process may be told. */
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

/** Publishes one after the other. */
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

export interface WorkOptions {
  /** Default 3. */
  readonly attempts?: number;
  /** An output file beside the result. */
  readonly hasOutput?: boolean;
  /** Only claims, and looks whether it was done before. */
  readonly isIdle?: boolean;
  /** Sends a ticket to the box next door. */
  readonly sends?: boolean;
}

/** Where tickets are sent to. */
export const nextDoor = "/next";

/** Opens the box and has its directories. */
export async function openToWork(context: ActorContext): Promise<Box> {
  const box = await openBox(context);
  const session = await box.ground.session();
  await box.processing(session);
  await box.staging(session);
  // The clock of the server is asked once in a while: not in these scenarios.
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

/** Has claimed a ticket before the scenario begins, and does nothing more. */
export function silentClaimant(steps: Steps): Actor {
  return actor({
    prepare: async (context) => void (await steps.claimNext(await openToWork(context))),
    run: async () => undefined,
  });
}

/** Claims, and goes away without a word. */
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

/** Gives back what dead processes had, and then works. */
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
    if ("damage" in claim) await failForGood(box, claim, "fail", claim.damage.message);
    else if (claim.name.claims > attempts) await failForGood(box, claim, "lost", "too many attempts");
    else await settle(context, box, claim, steps, options);
  } finally {
    box.inHand.delete(claim.path);
  }
  return true;
}

export async function settle(
  context: Pick<ActorContext, "name" | "note">,
  box: Box,
  claim: Claimed,
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
    // Rejects when a file is gone or is another: that is a broken promise, and no answer.
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

/** Declares all others dead, which may only sleep, and gives back what they had. */
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

/** Gives back what the dead had, and declares none dead. */
export function collector(steps: Steps): Actor {
  return actor({
    prepare: openToWork,
    run: (context, box) => orTold(context, async () => void (await steps.reap(box))),
  });
}

/** On another machine. */
export function on(machine: string, who: Actor): Actor {
  return { ...who, machine };
}

/** Opens the box after what happened meanwhile. */
export function fresh(who: Actor): Actor {
  return { ...who, isFresh: true };
}
