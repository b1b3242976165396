// Upgrading a hold: exact to tree, shared to exclusive.
//
// One append replaces its request by a wider one at the end of the list, so that its fence is above
// all that were granted before. Every live request that conflicts with the wider one refuses it.
// The request is never in the table twice, or a request that only waits behind it could enter
// beside it: so waiting means trying again.
import type { Waiting } from "../../common.ts";
import { checkTimeout, Deadline } from "../../durable/wait/deadline.ts";
import { ChangeWaiter } from "../../durable/wait/change-waiter.ts";
import { isHoldfastError } from "../../errors.ts";
import { coversEach, pathsOf, widestExtent, withExtent, type LockExtent } from "../table/claim.ts";
import { conflictingOf, conflictsWith, overtakenBy } from "../table/conflict.ts";
import { deadlock, lockTimeout } from "../table/describe.ts";
import type { LockTable } from "../table/lock-table.ts";
import { replaceRequest, withoutAnnouncement, type TableRequest, type TableState } from "../table/request.ts";
import { CallArguments } from "./arguments.ts";
import { correctTable } from "./monitor.ts";
import type { Grant } from "./grant.ts";
import type { LocksContext } from "./hold-verbs.ts";
import type { LockChange } from "./path-hold.ts";

/** LOCK_TIMEOUT; DEADLOCK when a request in the way waits for this hold. */
export async function upgrade(
  { table, interop, timeoutMs }: LocksContext,
  grant: Grant,
  change: LockChange,
  options: Waiting,
): Promise<void> {
  mustNotBeCovered(grant);
  const to = new CallArguments("upgrade").change("to", change);
  const waiting = { timeoutMs, ...options };
  const work = (left: Waiting): Promise<void> => upgradeRequest(table, grant, to, left);
  if (interop === undefined) await work(waiting);
  else await interop.showAround(grant, withExtent(grant.asked, to), waiting, work);
}

/** TypeError for a hold that has no request of its own to change. */
export function mustNotBeCovered(grant: Grant): void {
  if (grant.isCovered) throw new TypeError("This hold is part of the one that it is within: change that one.");
}

async function upgradeRequest(
  table: LockTable,
  grant: Grant,
  to: Partial<LockExtent>,
  { timeoutMs = 0, signal }: Waiting,
): Promise<void> {
  checkTimeout(timeoutMs);
  signal?.throwIfAborted();
  if (!coversEach(withExtent(grant.claims, to), grant.claims))
    throw new RangeError(
      "An upgrade goes from exact to tree, or from shared to exclusive; use downgrade for the other way.",
    );
  const waiter = new ChangeWaiter(table.ground.ports);
  const expired = Symbol("expired");
  const waitMs = Math.max(timeoutMs, 0);
  const deadline = new Deadline(table.ground.ports.clock, { timeoutMs: waitMs, signal, timedOut: () => expired });
  const timedOut = (blockers: readonly TableRequest[]): Promise<Error> =>
    lockTimeout(table.ground, { asked: grant.asked, claims: withExtent(grant.claims, to) }, waitMs, blockers);
  let isAnnounced = false;
  try {
    for (;;) {
      const blockers = await grant.duringChange(() => tryToUpgrade(table, grant, to));
      if (blockers.length === 0) return;
      if (timeoutMs <= 0) throw await timedOut(blockers);
      isAnnounced ||= await grant.duringChange(() => announce(table, grant, to));
      // A hold in the way announced first: the next try finds the deadlock.
      if (!isAnnounced) continue;
      const [{ id }] = blockers as [TableRequest];
      try {
        await waiter.wait(table.holds.pathOf(id), () => table.isOver(id), deadline);
      } catch (error) {
        throw error === expired ? await timedOut(blockers) : error;
      }
    }
  } finally {
    deadline.cancel();
    grant.extent.retractAnnouncement();
    // If this fails, the monitor corrects the table later: the caller is told how the upgrade
    // ended.
    await correctTable(table, grant).catch(() => undefined);
  }
}

/** The live requests in the way; none when it is done. */
async function tryToUpgrade(table: LockTable, grant: Grant, to: Partial<LockExtent>): Promise<readonly TableRequest[]> {
  grant.mustHold();
  // Before the append: holds that the outer hold covers are let in without one.
  if (!grant.claimInFamily(withExtent(grant.claims, to))) return [await parentRequest(table, grant)];
  try {
    return await tryToAppendWider(table, grant, to);
  } catch (error) {
    if (isHoldfastError(error, "OUTCOME_UNKNOWN")) grant.extent.noteInDoubt();
    throw error;
  } finally {
    grant.claimInFamily(grant.claims);
  }
}

/**
 * The request of the hold that this one is within: it covers the hold of the family that is in the
 * way.
 */
async function parentRequest(table: LockTable, { parent }: Grant): Promise<TableRequest> {
  const { state } = await table.read();
  const request = parent?.findRequest(state.requests);
  if (parent !== undefined && request === undefined) throw parent.loseAsDropped();
  return request as TableRequest;
}

async function tryToAppendWider(
  table: LockTable,
  grant: Grant,
  to: Partial<LockExtent>,
): Promise<readonly TableRequest[]> {
  for (;;) {
    grant.mustHold();
    let blockers: readonly TableRequest[] = [];
    let cycle: readonly TableRequest[] = [];
    let isListed = false;
    const entry = await table.append(({ requests, redos }, { fence, change }) => {
      const mine = grant.findRequest(requests);
      isListed = mine !== undefined;
      if (mine === undefined) return undefined;
      const wider: TableRequest = { ...mine, claims: withExtent(grant.claims, to), fence, change };
      const others = requests.filter((request) => request !== mine);
      // They wait for a hold that this one is within, so they cannot end before it does.
      const overtaken = overtakenBy([...others, wider], wider);
      blockers = [...new Set([...conflictingOf(requests, wider), ...overtaken])];
      cycle = blockers.filter((other) => overtaken.includes(other) || waitsFor(other, mine, requests));
      return blockers.length > 0 ? undefined : { requests: [...others, withoutAnnouncement(wider)], redos };
    });
    if (entry !== undefined) {
      await finishUpgrade(table, grant, entry.state, to);
      return [];
    }
    if (!isListed) throw grant.loseAsDropped();
    const living = await table.judge(blockers, { once: true });
    const closed = cycle.filter((request) => living.includes(request));
    if (closed.length > 0) {
      const path = pathsOf(grant.asked);
      const message = `${path} cannot be upgraded, because a request in the way waits for this hold. Release it and ask for the wider lock instead.`;
      throw await deadlock(table.ground, path, closed, message);
    }
    if (living.length > 0) return living;
  }
}

/**
 * Whether `other` cannot end before `mine` does: it is behind it in the list, or waits for an
 * upgrade that `mine` excludes.
 */
function waitsFor(other: TableRequest, mine: TableRequest, requests: readonly TableRequest[]): boolean {
  if (requests.indexOf(other) > requests.indexOf(mine) && conflictsWith(other.claims, mine.claims)) return true;
  return other.wants !== undefined && conflictsWith(withExtent(other.claims, other.wants), mine.claims);
}

async function finishUpgrade(
  table: LockTable,
  grant: Grant,
  state: TableState,
  to: Partial<LockExtent>,
): Promise<void> {
  const mine = grant.findRequest(state.requests);
  if (mine === undefined) throw grant.loseAsDropped();
  grant.upgrade(mine, to);
  // What a dropped holder committed there is completed before anything is done under the wider
  // hold.
  await table.completeOrphans(state, (redo) => conflictsWith(mine.claims, redo.claims));
  grant.mustHold();
}

/**
 * Writes into the table what this hold waits to become, so that another hold that upgrades sees
 * that the two would wait for each other. False when a request in the way has announced before: of
 * two that announce at the same time only the second one finds the other, so one of them goes on
 * waiting.
 */
async function announce(table: LockTable, grant: Grant, to: Partial<LockExtent>): Promise<boolean> {
  grant.mustHold();
  grant.extent.noteAnnouncement();
  const entry = await table.append((state, { change }) => {
    const { requests } = state;
    const mine = grant.findRequest(requests);
    if (mine === undefined) return undefined;
    const claims = withExtent(grant.claims, to);
    if (conflictingOf(requests, { ...mine, claims }).some((other) => waitsFor(other, mine, requests))) return undefined;
    return replaceRequest(state, mine, { ...mine, change, wants: widestExtent(claims) });
  });
  if (entry === undefined) grant.extent.forgetAnnouncement();
  return entry !== undefined;
}
