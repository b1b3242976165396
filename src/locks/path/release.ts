// Releasing a hold, by its owner or after it was lost. In this order:
//   1. Nothing new begins under it.
//   2. The holds within it are lost and released.
//   3. Appends in progress under it end, committed redos are completed, and drafts are discarded.
//   4. Its lock files for foreign programs are removed.
//   5. It is given up: from here on its request may be another's.
//   6. Its request goes to the next caller of this process that wants the same, or is released in
//      the table.
//   7. It leaves its queue.
import { discardDrafts, settleRedos } from "../redo/draft.ts";
import type { Grant } from "./grant.ts";

/**
 * A request is passed on within its process at most this often and for this long; then other processes get their
 * turn.
 */
const passesMax = 64;
const passingMsMax = 20;

/**
 * A second call does nothing, because another caller may own the request by then. The monitor retries a failed
 * release.
 */
export async function release(grant: Grant): Promise<void> {
  try {
    await grant.inTurn(() => releaseOnce(grant));
  } catch (error) {
    // The caller may be gone, and others wait for this release.
    if (!grant.isGivenUp) grant.locks.monitor.releaseLater(grant);
    throw error;
  }
}

async function releaseOnce(grant: Grant): Promise<void> {
  if (grant.isGivenUp) return;
  grant.beginToEnd();
  await finishWork(grant, "the hold that it is within was released");
  const { table, interop, monitor } = grant.locks;
  if (!grant.isCovered) await interop?.hide(grant);
  monitor.forget(grant);
  const wasHeld = grant.giveUp();
  try {
    if (grant.isCovered) return;
    // With interop the request is not passed on: foreign programs would not see that the caller changed.
    if (wasHeld && interop === undefined && (await passOn(grant))) return;
    // Release the request even if the hold was lost: others need not find out themselves that nothing is done under
    // it any more. If this fails, the table retries it.
    const removal = table.release(grant.id);
    await (wasHeld ? removal : removal.catch(() => undefined));
    await table.removeReceipt(grant.id, grant.session.holder.id);
  } finally {
    grant.leaveQueue();
  }
}

/**
 * Ends everything that is in progress under a hold. Its request stays until this has succeeded: others take the end
 * of the request as proof that all its effects are done.
 */
export async function finishWork(grant: Grant, why: string): Promise<void> {
  for (const inner of grant.inner) {
    inner.lose(why);
    await release(inner);
  }
  // Wait for appends: one that finds the request in the table now may be linked when another caller owns the request.
  await grant.untilQuiet();
  await settleRedos(grant.locks.table, grant);
  await discardDrafts(grant);
}

/**
 * Passes the request of a released grant to the next caller of this process that waits for the same claims. Needs no
 * append: as long as the hold file exists, no other process can have entered. Returns false if the request must be
 * released.
 */
async function passOn(grant: Grant): Promise<boolean> {
  const { table, closed, clock } = grant.locks;
  if (!grant.isPassable || closed.aborted || grant.passes + 1 >= passesMax) return false;
  if (clock.monotonicMs() - grant.requestedMs > passingMsMax) return false;
  // If the hold file cannot be checked, release the request.
  if (await table.isOver(grant.id).catch(() => true)) return false;
  return grant.passOn();
}
