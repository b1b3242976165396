// Known-wrong variants of holds within one hold.
import type { Claim } from "../../locks/table/claim.ts";
import { Acquirer } from "../../locks/path/acquire.ts";
import type { Grant } from "../../locks/path/grant.ts";
import { LocalQueue } from "../../locks/path/local-queue.ts";
import { holdingOf } from "../../locks/table/listing.ts";
import { LockTable } from "../../locks/table/lock-table.ts";
import { familyScenarios } from "../scenarios/locks/families.ts";
import { scenarioNamed, type Mutant } from "./mutant.ts";

/** A request is judged by those that hold: processes that only wait are not asked. */
class BlindToWaiters extends LockTable {
  override async request(change: Parameters<LockTable["request"]>[0]): ReturnType<LockTable["request"]> {
    return await super.request(({ requests, redos }, made) => {
      const next = change({ requests: holdingOf(requests), redos }, made);
      return next && { ...next, requests: [...new Set([...requests, ...next.requests])] };
    });
  }
}

/** Only what a hold covers stands in the line within it; what it covers in part is left to the table. */
class LineOfTheCovered extends Acquirer {
  protected override familyLineOf(parent: Grant, claims: readonly Claim[]): LocalQueue {
    return parent.covers(claims) ? super.familyLineOf(parent, claims) : new LocalQueue();
  }
}

/** A hold keeps the fence that it had, though one within it has written with a higher one. */
class OuterFenceStays extends Acquirer {
  protected override raiseOuterFences(): void {
    // None is raised.
  }
}

export const familyMutants: readonly Mutant[] = [
  {
    name: "hold within another that only the table excludes",
    about: "What the outer hold covers is not in the table, so the two are inside together.",
    scenario: scenarioNamed(
      familyScenarios({ EntranceClass: LineOfTheCovered }),
      "hands: two callers within one hold, and another process",
    ),
    breaks: /are inside together/,
  },
  {
    name: "locks: fence of an outer hold that stays",
    about: "After a hold within it has ended, the outer one writes to the same path with a lower fence.",
    scenario: scenarioNamed(
      familyScenarios({ EntranceClass: OuterFenceStays }),
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
