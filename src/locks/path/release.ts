// Releasing a hold, by its owner or after it was lost. In this order:
//   1. Nothing new is begun under it.
//   2. The holds within it are lost and released.
//   3. Appends that are under way under it end, committed redos are completed, and drafts are
//      discarded.
//   4. Its lock files for foreign programs are removed.
//   5. It is given up: from here on its request may be another's.
//   6. Its request goes to the next caller of this process that wants the same, or is released in
//      the table.
//   7. It leaves its queue.
import { discardDrafts, settleRedos } from "../redo/draft.ts";
import type { Grant } from "./grant.ts";
import type { LocksContext } from "./hold-verbs.ts";

/**
 * A request is passed on within its process so often, and for so long; then other processes have
 * their turn.
 */
const passesMax = 64;
const passingMsMax = 20;

/**
 * Once: said again, it does nothing, because the request may be another's. A failed release is
 * repeated by the monitor.
 */
export async function release(locks: LocksContext, grant: Grant): Promise<void> {
  try {
    await grant.inTurn(() => releaseOnce(locks, grant));
  } catch (error) {
    // The caller may be gone, and others wait.
    if (!grant.isGivenUp) locks.monitor.releaseLater(grant);
    throw error;
  }
}

async function releaseOnce(locks: LocksContext, grant: Grant): Promise<void> {
  if (grant.isGivenUp) return;
  grant.beginToEnd();
  await finishWork(locks, grant, "the hold that it is within was released");
  const { table, interop, monitor } = locks;
  if (!grant.isCovered) await interop?.hide(grant);
  monitor.forget(grant);
  const wasHeld = grant.giveUp();
  try {
    if (grant.isCovered) return;
    // Foreign programs would not see it pass from one caller to the next.
    if (wasHeld && interop === undefined && (await passOn(locks, grant))) return;
    // Also when it was lost: nothing more is done under it, and other processes need not find that
    // out by themselves. If it fails, the table repeats it.
    const removal = table.release(grant.id);
    await (wasHeld ? removal : removal.catch(() => undefined));
    await table.holds.removeReceipt(grant.id, grant.session.holder.id);
  } finally {
    grant.leaveQueue();
  }
}

/**
 * Ends all that is under way under a hold. Its request stands until this has succeeded, because
 * others take the end of the request for the end of all its effects.
 */
export async function finishWork(locks: LocksContext, grant: Grant, why: string): Promise<void> {
  for (const inner of grant.inner) {
    inner.lose(why);
    await locks.verbs.release(locks, inner);
  }
  // An append that finds the request in the table now may be linked when the request is another's.
  await grant.work.untilQuiet();
  await settleRedos(locks.table, grant);
  await discardDrafts(grant);
}

/**
 * Passes the request of a released grant to the next caller of this process that waits for the
 * same, without an append: no other process can have come in as long as its hold file is there.
 * False when it must be released.
 */
async function passOn({ table, closed }: LocksContext, grant: Grant): Promise<boolean> {
  if (!grant.isPassable || closed.aborted || grant.passes + 1 >= passesMax) return false;
  if (table.ground.ports.clock.monotonicMs() - grant.requestedMs > passingMsMax) return false;
  // If the hold file cannot be asked for, the request is released.
  if (await table.isOver(grant.id).catch(() => true)) return false;
  return grant.passOn();
}
