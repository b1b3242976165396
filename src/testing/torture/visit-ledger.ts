// The visits to locked places that were confirmed to have held from beginning to end: no two that
// conflict at the same time, and fences in the order of the visits.
import type { Claim } from "../../locks/table/claim.ts";
import { conflictsWith } from "../../locks/table/conflict.ts";

export interface ConfirmedVisit {
  readonly claims: readonly Claim[];
  readonly fence: number;
  /** By one clock for all. */
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * How many of the last visits each new one is compared with: reports come in late by milliseconds,
 * not by thousands of visits.
 */
const comparedMax = 500;

export class VisitLedger {
  readonly #visits: ConfirmedVisit[] = [];

  /** What is wrong with it, if anything. */
  note(visit: ConfirmedVisit): string | undefined {
    for (const other of this.#visits)
      if (conflictsWith(visit.claims, other.claims)) {
        const [first, second] = visit.fence < other.fence ? [visit, other] : [other, visit];
        if (first.fence === second.fence) return `fence ${first.fence} was given out twice`;
        if (second.fromMs < first.toMs)
          return second.toMs <= first.fromMs
            ? `fence ${second.fence} was inside before fence ${first.fence}`
            : `fences ${first.fence} and ${second.fence} were inside together`;
      }
    this.#visits.push(visit);
    if (this.#visits.length > comparedMax) this.#visits.shift();
    return undefined;
  }
}
