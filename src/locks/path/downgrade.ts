// Downgrading a hold: tree to exact, exclusive to shared.
//
// The hold becomes narrower in this process before it does in the table: once the table has changed, others may
// enter.
import { isHoldfastError } from "../../errors.ts";
import { settleRedos } from "../redo/draft.ts";
import type { Redo } from "../redo/redo.ts";
import { coversEach, withExtent, type LockExtent } from "../table/conflict.ts";
import { replaceRequest } from "../table/request.ts";
import { CallArguments } from "./arguments.ts";
import type { Grant } from "./grant.ts";
import { tryToCorrectTable } from "./monitor.ts";
import type { LockChange } from "./path-hold.ts";
import { mustNotBeCovered } from "./upgrade.ts";

/**
 * Does not wait for other processes. Throws OUTCOME_UNKNOWN if the table may still have the wider claims. The hold is
 * narrower even then.
 */
export async function downgrade(grant: Grant, change: LockChange): Promise<void> {
  mustNotBeCovered(grant);
  const to = new CallArguments("downgrade").change("to", change);
  // Apply all changes that were committed under the wider hold, before others enter a part of it.
  do await settleRedos(grant.locks.table, grant);
  while (!(await grant.duringChange(() => tryToDowngrade(grant, to))));
  await grant.locks.interop?.adapt(grant);
}

/** Returns false, without a change, if redos that were committed under the hold must be completed first. */
async function tryToDowngrade(grant: Grant, to: Partial<LockExtent>): Promise<boolean> {
  grant.mustHold();
  const before = grant.claims;
  const narrower = withExtent(before, to);
  if (!coversEach(before, narrower))
    throw new RangeError(
      "A downgrade goes from tree to exact, or from exclusive to shared; use upgrade for the other way.",
    );
  grant.claims = narrower;
  let pending: readonly Redo[];
  try {
    pending = await appendNarrower(grant);
  } catch (error) {
    if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) {
      grant.claims = before;
      throw error;
    }
    finish(grant, to, { isInDoubt: true });
    await tryToCorrectTable(grant).catch(() => undefined);
    if (grant.isInDoubt) throw error;
    return true;
  }
  for (const redo of pending) grant.redos.set(redo.id, redo);
  if (pending.length > 0) grant.claims = before;
  else finish(grant, to, { isInDoubt: false });
  return pending.length === 0;
}

/** Narrows the hold permanently, and ends covered holds that it no longer covers. */
function finish(grant: Grant, to: Partial<LockExtent>, { isInDoubt }: { readonly isInDoubt: boolean }): void {
  grant.asked = withExtent(grant.asked, to);
  grant.isInDoubt = isInDoubt;
  grant.claimInFamily(grant.claims);
  for (const inner of grant.inner)
    if (inner.isCovered && !grant.covers(inner.claims)) inner.lose("the hold that it is within was downgraded");
}

/** Returns the redos that must be completed first; none if the append is done. */
async function appendNarrower(grant: Grant): Promise<readonly Redo[]> {
  let isListed = false;
  let pending: readonly Redo[] = [];
  await grant.locks.table.append((state, { change }) => {
    const mine = grant.findRequest(state.requests);
    isListed = mine !== undefined;
    pending = state.redos.filter(({ request }) => request === mine?.id);
    if (mine === undefined || pending.length > 0) return undefined;
    return replaceRequest(state, mine, { ...mine, claims: grant.claims, change });
  });
  if (!isListed) throw grant.loseAsDropped();
  return pending;
}
