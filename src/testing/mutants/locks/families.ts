// Known-wrong variants of holds within one hold.
import { acquire } from "../../../locks/path/acquire.ts";
import type { Grant } from "../../../locks/path/grant.ts";
import { LocalQueue, type LocalTurn } from "../../../locks/path/local-queue.ts";
import { PathHoldHandle, type HoldVerbs } from "../../../locks/path/hold-verbs.ts";
import type { Claim } from "../../../locks/table/claim.ts";
import { holdingOf } from "../../../locks/table/conflict.ts";
import { LockTable } from "../../../locks/table/lock-table.ts";
import { familyScenarios } from "../../scenarios/locks/families.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** A new request is compared only with requests that hold, and not with those that wait. */
class BlindToWaiters extends LockTable {
  override async request(change: Parameters<LockTable["request"]>[0]): ReturnType<LockTable["request"]> {
    return await super.request(({ requests, redos }, made) => {
      const next = change({ requests: holdingOf(requests), redos }, made);
      return next && { ...next, requests: [...new Set([...requests, ...next.requests])] };
    });
  }
}

/** Changes the grant of the hold that a caller asks within. */
function spoiledParents(spoil: (parent: Grant) => void): Partial<HoldVerbs> {
  return {
    acquire: async (locks, requests, options) => {
      if (options.within !== undefined) spoil(PathHoldHandle.grantOf(options.within, locks));
      return await acquire(locks, requests, options);
    },
  };
}

/**
 * Only claims that the parent covers wait in the queue of its family; others are left to the table.
 */
class QueueOfTheCovered extends LocalQueue {
  readonly #parent: Grant;

  constructor(parent: Grant) {
    super();
    this.#parent = parent;
  }

  override tryEnter(claims: readonly Claim[], within?: string): LocalTurn<never> | undefined {
    return this.#parent.covers(claims) ? super.tryEnter(claims, within) : new LocalQueue().tryEnter(claims);
  }
}

const queueOfTheCovered = spoiledParents((parent) => {
  if (!Object.hasOwn(parent, "familyQueue"))
    Object.defineProperty(parent, "familyQueue", { value: new QueueOfTheCovered(parent) });
});

/** A hold keeps the fence that it had, though a hold within it has written with a higher one. */
const outerFenceStays = spoiledParents((parent) => {
  parent.raiseFence = () => undefined;
});

export const familyMutants: readonly Mutant[] = [
  {
    name: "hold within another that only the table excludes",
    about: "What the outer hold covers is not in the table, so the two are inside together.",
    scenario: scenarioNamed(
      familyScenarios({ verbs: queueOfTheCovered }),
      "hands: two callers within one hold, and another process",
    ),
    breaks: /are inside together/,
  },
  {
    name: "locks: fence of an outer hold that stays",
    about: "After a hold within it has ended, the outer one writes to the same path with a lower fence.",
    scenario: scenarioNamed(
      familyScenarios({ verbs: outerFenceStays }),
      "hands: a hold within another, and a process that waits for that",
    ),
    breaks: /fence \d+ came after fence \d+/,
  },
  {
    name: "locks: fence of an outer hold that rises over a waiter's",
    about: "The hold within it is let in, and the waiter comes after both with the fence that it has, which is lower.",
    scenario: scenarioNamed(
      familyScenarios({ TableClass: BlindToWaiters }),
      "hands: a hold within another, and a process that waits for that",
    ),
    breaks: /fence \d+ came after fence \d+/,
  },
];
