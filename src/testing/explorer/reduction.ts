// Determines which steps can be reordered without any actor noticing. Of two orders that differ only in
// such steps the explorer tries one (sleep sets).
import { durabilityTouch, type Touch } from "../sim/call.ts";
import type { Scenario } from "./scenario.ts";

/** The part of a step that decides about its order. */
export interface TakenStep {
  readonly id: string;
  readonly actor: string;
  readonly touches: readonly Touch[] | undefined;
  /** True if it noted a fact: promises are about the order of such steps. */
  readonly noted: boolean;
}

/**
 * Steps that need not be tried from a state, because they were tried just before it and nothing since depends on
 * them.
 */
export type SleepSet = ReadonlyMap<string, TakenStep>;

/**
 * False if orders are not interchangeable: a power cut sees every order, and old directory handles touch other paths
 * than they name.
 */
export function canReduce({ powerCuts, quirks }: Scenario): boolean {
  return !powerCuts && !quirks?.directoryHandles;
}

/** Returns the steps of `asleep` that are still asleep after `step`. */
export function stillAsleep(asleep: SleepSet, step: TakenStep, scenario: Scenario): SleepSet {
  return new Map([...asleep].filter(([, other]) => areIndependent(other, step, scenario)));
}

function areIndependent(a: TakenStep, b: TakenStep, scenario: Scenario): boolean {
  if (a.actor === b.actor || a.touches === undefined || b.touches === undefined || (a.noted && b.noted)) return false;
  if (shareCaches(a.actor, b.actor, scenario)) return false;
  return !a.touches.some((one) => b.touches?.some((other) => conflict(one, other)));
}

function shareCaches(a: string, b: string, { quirks, actors }: Scenario): boolean {
  return (
    Boolean(quirks?.staleListings || quirks?.staleAbsence || quirks?.stalePresence) &&
    actors[a]?.machine === actors[b]?.machine
  );
}

function conflict(a: Touch, b: Touch): boolean {
  if (!a.changes && !b.changes) return false;
  if (a.what === durabilityTouch || b.what === durabilityTouch) return false;
  return `${a.what}/`.startsWith(`${b.what}/`) || `${b.what}/`.startsWith(`${a.what}/`);
}
