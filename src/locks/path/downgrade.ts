// Downgrading a hold: tree to exact, exclusive to shared. The hold is narrower before the table
// says so, never after it.
import { isHoldfastError } from "../../errors.ts";
import { settleRedos } from "../redo/draft.ts";
import type { Redo } from "../redo/record.ts";
import { coversEach, withExtent, type LockExtent } from "../table/claim.ts";
import type { LockTable } from "../table/lock-table.ts";
import { replaceRequest } from "../table/request.ts";
import { CallArguments } from "./arguments.ts";
import { tryToCorrectTable } from "./monitor.ts";
import type { Grant } from "./grant.ts";
import type { LocksContext } from "./hold-verbs.ts";
import type { LockChange } from "./path-hold.ts";
import { mustNotBeCovered } from "./upgrade.ts";

/**
 * Waits for no other process. OUTCOME_UNKNOWN when the table may still have the wider claims: the
 * hold is narrower all the same.
 */
export async function downgrade({ table, interop }: LocksContext, grant: Grant, change: LockChange): Promise<void> {
  mustNotBeCovered(grant);
  const to = new CallArguments("downgrade").change("to", change);
  // What was committed under all of it happens before others are let into a part.
  do await settleRedos(table, grant);
  while (!(await grant.duringChange(() => tryToDowngrade(table, grant, to))));
  await interop?.adapt(grant);
}

/**
 * False, and nothing has changed, when redos were committed under it that have to be completed
 * before.
 */
async function tryToDowngrade(table: LockTable, grant: Grant, to: Partial<LockExtent>): Promise<boolean> {
  grant.mustHold();
  const { extent } = grant;
  if (!coversEach(grant.claims, withExtent(grant.claims, to)))
    throw new RangeError(
      "A downgrade goes from tree to exact, or from exclusive to shared; use upgrade for the other way.",
    );
  extent.beginDowngrade(to);
  let pending: readonly Redo[];
  try {
    pending = await appendNarrower(table, grant);
  } catch (error) {
    if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) {
      extent.cancelDowngrade();
      throw error;
    }
    grant.finishDowngrade(to, { isInDoubt: true });
    await tryToCorrectTable(table, grant).catch(() => undefined);
    if (extent.isInDoubt) throw error;
    return true;
  }
  for (const redo of pending) grant.work.noteRedo(redo);
  if (pending.length > 0) extent.cancelDowngrade();
  else grant.finishDowngrade(to, { isInDoubt: false });
  return pending.length === 0;
}

/** The redos that have to be completed before; none when it is done. */
async function appendNarrower(table: LockTable, grant: Grant): Promise<readonly Redo[]> {
  let isListed = false;
  let pending: readonly Redo[] = [];
  await table.append((state, { change }) => {
    const mine = grant.findRequest(state.requests);
    isListed = mine !== undefined;
    pending = state.redos.filter(({ request }) => request === mine?.id);
    if (mine === undefined || pending.length > 0) return undefined;
    return replaceRequest(state, mine, { ...mine, claims: grant.claims, change });
  });
  if (!isListed) throw grant.loseAsDropped();
  return pending;
}
