// The visits that were confirmed to have held their locks from beginning to end. No two conflicting visits may overlap,
// and fences must follow the order of the visits.
import { type Claim, conflictsWith } from "../../src/locks/table/conflict.ts";

export interface ConfirmedVisit {
  readonly claims: readonly Claim[];
  readonly fence: number;
  /** All times come from one clock. */
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * The number of last visits with which each new one is compared: reports arrive late by milliseconds, not by thousands
 * of visits.
 */
const comparedMax = 500;

export class VisitLedger {
  readonly #visits: ConfirmedVisit[] = [];

  /** Returns the error that the visit reveals, if any. */
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
