// Known-wrong variants of holds within one hold.
import type { Grant } from "../../../src/locks/path/grant.ts";
import { LocalQueue, type LocalTurn } from "../../../src/locks/path/local-queue.ts";
import type { TablePathLocks } from "../../../src/locks/path/table-path-locks.ts";
import { type Claim, holdingOf } from "../../../src/locks/table/conflict.ts";
import { LockTable } from "../../../src/locks/table/lock-table.ts";
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

/** Changes the grant of the outer hold. */
function spoiledParents(spoil: (parent: Grant) => void): (locks: TablePathLocks) => void {
  return (locks) => {
    const grantOf = locks.grantOf.bind(locks);
    locks.grantOf = (hold) => {
      const grant = grantOf(hold);
      spoil(grant);
      return grant;
    };
  };
}

/**
 * Only claims that the parent covers wait in the queue of its family; others are left to the table.
 */
class QueueOfTheCovered extends LocalQueue<Grant> {
  readonly #parent: Grant;

  constructor(parent: Grant) {
    super();
    this.#parent = parent;
  }

  override tryEnter(claims: readonly Claim[], within?: string): LocalTurn<Grant> | undefined {
    return this.#parent.covers(claims) ? super.tryEnter(claims, within) : new LocalQueue<Grant>().tryEnter(claims);
  }
}

const queueOfTheCovered = spoiledParents((parent) => {
  if (!Object.hasOwn(parent, "familyQueue"))
    Object.defineProperty(parent, "familyQueue", { value: new QueueOfTheCovered(parent) });
});

/** A hold keeps its fence although an inner hold has written with a higher one. */
const outerFenceStays = spoiledParents((parent) => {
  parent.raiseFence = () => undefined;
});

export const familyMutants: readonly Mutant[] = [
  {
    name: "hold within another that only the table excludes",
    about: "Requests that the outer hold covers are not in the table, so two callers hold conflicting locks.",
    scenario: scenarioNamed(
      familyScenarios({ spoil: queueOfTheCovered }),
      "hands: two callers within one hold, and another process",
    ),
    breaks: /are inside together/,
  },
  {
    name: "locks: fence of an outer hold that stays",
    about: "After an inner hold has ended, the outer one writes to the same path with a lower fence.",
    scenario: scenarioNamed(
      familyScenarios({ spoil: outerFenceStays }),
      "hands: a hold within another, and a process that waits for that",
    ),
    breaks: /fence \d+ came after fence \d+/,
  },
  {
    name: "locks: fence of an outer hold that rises over a waiter's",
    about: "The inner hold is granted, and a waiter follows with the fence that it already has, which is lower.",
    scenario: scenarioNamed(
      familyScenarios({ TableClass: BlindToWaiters }),
      "hands: a hold within another, and a process that waits for that",
    ),
    breaks: /fence \d+ came after fence \d+/,
  },
];
