// Narrowing a hold: tree to exact, exclusive to shared. The hold is narrower before the list says so, never after it.
import { isHoldfastError } from "../../errors.ts";
import type { Grant } from "./grant.ts";
import type { LockTable } from "../table/lock-table.ts";
import type { Redo } from "../redo/record.ts";
import { changed, findOwn, isAsWide, loseIt, replaced, tryToSettle, type LockChange } from "./upgrade.ts";

/**
 * Never waits: those that wait for what is given up find it in the list. False when something was committed under it that has
 * to be done before. OUTCOME_UNKNOWN when the list may still say what it was: the hold is narrower all the same.
 */
export async function downgrade(table: LockTable, grant: Grant, to: LockChange): Promise<boolean> {
  return await grant.duringChange(() => tryToNarrow(table, grant, to));
}

async function tryToNarrow(table: LockTable, grant: Grant, to: LockChange): Promise<boolean> {
  grant.mustHold();
  const before = grant.claims;
  const claims = changed(before, to);
  if (!isAsWide(before, claims))
    throw new RangeError(
      "A downgrade goes from tree to exact, or from exclusive to shared; use upgrade for the other way.",
    );
  // Before the list says so, because others come in as soon as it does.
  grant.claims = claims;
  let pending: readonly Redo[];
  try {
    pending = await narrowRequest(table, grant);
  } catch (error) {
    if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) {
      grant.claims = before;
      throw error;
    }
    becomeNarrower(grant, to);
    grant.isWidthInDoubt = true;
    await tryToSettle(table, grant).catch(() => undefined);
    if (grant.isWidthInDoubt) throw error;
    return true;
  }
  for (const redo of pending) grant.redos.set(redo.id, redo);
  if (pending.length > 0) grant.claims = before;
  else becomeNarrower(grant, to);
  return pending.length === 0;
}

/** What was committed under it and has to be done before; none when it is done. */
async function narrowRequest(table: LockTable, grant: Grant): Promise<readonly Redo[]> {
  let isListed = false;
  let pending: readonly Redo[] = [];
  await table.append(({ requests, redos }, { change }) => {
    const mine = findOwn(requests, grant);
    isListed = mine !== undefined;
    pending = redos.filter(({ request }) => request === mine?.id);
    if (mine === undefined || pending.length > 0) return undefined;
    return { requests: replaced(requests, mine, { ...mine, claims: grant.claims, change }), redos };
  });
  if (!isListed) throw loseIt(grant);
  return pending;
}

/** Its claims are narrower: so is all that rests on them. */
function becomeNarrower(grant: Grant, to: LockChange): void {
  grant.isWidthInDoubt = false;
  grant.asked = changed(grant.asked, to);
  grant.familyPlace?.change(grant.claims);
  for (const inner of grant.inner)
    if (inner.isCovered && !grant.covers(inner.claims)) inner.lose(inner.lost("what it is within was downgraded"));
}
