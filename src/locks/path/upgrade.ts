// Upgrading a hold: exact to tree, shared to exclusive.
//
// One append replaces its request by a wider one at the end of the list, so that its fence is above all that were
// granted before. Any live request that conflicts with the wider one prevents the upgrade. The request is never in
// the table twice: otherwise a request that waits only behind the first could enter beside the second. Waiting
// therefore means trying again.
import type { Waiting } from "../../common.ts";
import { checkTimeout, Deadline } from "../../durable/wait/deadline.ts";
import { ChangeWaiter } from "../../durable/wait/change-waiter.ts";
import { isHoldfastError } from "../../errors.ts";
import {
  coversEach,
  pathsOf,
  widestExtent,
  withExtent,
  type LockExtent,
  conflictingOf,
  conflictsWith,
  overtakenBy,
} from "../table/conflict.ts";
import { deadlock, lockTimeout } from "../table/describe.ts";
import { fenceOf, replaceRequest, withoutAnnouncement, type TableRequest, type TableState } from "../table/request.ts";
import { CallArguments } from "./arguments.ts";
import type { Grant } from "./grant.ts";
import { correctTable } from "./monitor.ts";
import type { LockChange } from "./path-hold.ts";

/** Throws LOCK_TIMEOUT, and DEADLOCK if a blocking request waits for this hold. */
export async function upgrade(grant: Grant, change: LockChange, options: Waiting): Promise<void> {
  const { interop, timeoutMs } = grant.locks;
  mustNotBeCovered(grant);
  const to = new CallArguments("upgrade").change("to", change);
  const waiting = { timeoutMs, ...options };
  const work = (left: Waiting): Promise<void> => upgradeRequest(grant, to, left);
  if (interop === undefined) await work(waiting);
  else await interop.showAround(grant, withExtent(grant.asked, to), waiting, work);
}

/** Throws a TypeError for a hold that has no request of its own to change. */
export function mustNotBeCovered(grant: Grant): void {
  if (grant.isCovered) throw new TypeError("This hold is part of the one that it is within: change that one.");
}

async function upgradeRequest(
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
  const { table } = grant.locks;
  const waiter = new ChangeWaiter(table.ground);
  const expired = Symbol("expired");
  const waitMs = Math.max(timeoutMs, 0);
  const deadline = new Deadline(table.ground.ports.clock, { timeoutMs: waitMs, signal, timedOut: () => expired });
  const timedOut = (blockers: readonly TableRequest[]): Promise<Error> =>
    lockTimeout(table.ground, { asked: grant.asked, claims: withExtent(grant.claims, to) }, waitMs, blockers);
  let isAnnounced = false;
  try {
    for (;;) {
      const blockers = await grant.duringChange(() => tryToUpgrade(grant, to));
      if (blockers.length === 0) return;
      if (timeoutMs <= 0) throw await timedOut(blockers);
      isAnnounced ||= await grant.duringChange(() => announce(grant, to));
      // A blocking hold announced its upgrade first. The next try finds the deadlock.
      if (!isAnnounced) continue;
      const [{ id }] = blockers as [TableRequest];
      try {
        await waiter.wait(table.markOf(id), () => table.isOver(id), deadline);
      } catch (error) {
        throw error === expired ? await timedOut(blockers) : error;
      }
    }
  } finally {
    deadline.cancel();
    if (grant.announcement === "maybe written") grant.announcement = "to retract";
    // If this fails, the monitor corrects the table later. The caller gets the result of the upgrade.
    await correctTable(grant).catch(() => undefined);
  }
}

/** Returns the live requests that block it; none if the upgrade is done. */
async function tryToUpgrade(grant: Grant, to: Partial<LockExtent>): Promise<readonly TableRequest[]> {
  grant.mustHold();
  // Do this before the append: holds that the outer hold covers enter without an append.
  if (!grant.claimInFamily(withExtent(grant.claims, to))) return [await parentRequest(grant)];
  try {
    return await tryToAppendWider(grant, to);
  } catch (error) {
    if (isHoldfastError(error, "OUTCOME_UNKNOWN")) grant.isInDoubt = true;
    throw error;
  } finally {
    grant.claimInFamily(grant.claims);
  }
}

/** Returns the request of the outer hold, which covers the family's hold that blocks this one. */
async function parentRequest({ locks, parent }: Grant): Promise<TableRequest> {
  const { state } = await locks.table.read();
  const request = parent?.findRequest(state.requests);
  if (parent !== undefined && request === undefined) throw parent.loseAsDropped();
  return request as TableRequest;
}

async function tryToAppendWider(grant: Grant, to: Partial<LockExtent>): Promise<readonly TableRequest[]> {
  const { table } = grant.locks;
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
      // They wait for an outer hold of this one, so they cannot end before it does.
      const overtaken = overtakenBy([...others, wider], wider);
      blockers = [...new Set([...conflictingOf(requests, wider), ...overtaken])];
      cycle = blockers.filter((other) => overtaken.includes(other) || waitsFor(other, mine, requests));
      return blockers.length > 0 ? undefined : { requests: [...others, withoutAnnouncement(wider)], redos };
    });
    if (entry !== undefined) {
      await finishUpgrade(grant, entry.state, to);
      return [];
    }
    if (!isListed) throw grant.loseAsDropped();
    const living = await table.judge(blockers, { once: true });
    const closed = cycle.filter((request) => living.includes(request));
    if (closed.length > 0) {
      const path = pathsOf(grant.asked);
      const message = `${path} cannot be upgraded, because a request that blocks it waits for this hold. Release it and ask for the wider lock instead.`;
      throw await deadlock(table.ground, path, closed, message);
    }
    if (living.length > 0) return living;
  }
}

/**
 * True if `other` cannot end before `mine`: it is behind it in the list, or waits for an upgrade that `mine`
 * prevents.
 */
function waitsFor(other: TableRequest, mine: TableRequest, requests: readonly TableRequest[]): boolean {
  if (requests.indexOf(other) > requests.indexOf(mine) && conflictsWith(other.claims, mine.claims)) return true;
  return other.wants !== undefined && conflictsWith(withExtent(other.claims, other.wants), mine.claims);
}

async function finishUpgrade(grant: Grant, state: TableState, to: Partial<LockExtent>): Promise<void> {
  const mine = grant.findRequest(state.requests);
  if (mine === undefined) throw grant.loseAsDropped();
  widen(grant, mine, to);
  // Complete what a dropped holder committed there before anything is done under the wider hold.
  await grant.locks.table.completeOrphans(state, (redo) => conflictsWith(mine.claims, redo.claims));
  grant.mustHold();
}

/** Makes the grant wider once the table has `request` with the wider claims. */
export function widen(grant: Grant, request: TableRequest, to: Partial<LockExtent>): void {
  grant.noteInTable();
  grant.claims = request.claims;
  grant.asked = withExtent(grant.asked, to);
  grant.upgradeFence(fenceOf(request));
}

/**
 * Announces in the table which extent this hold waits for, so that another hold that upgrades detects that the two
 * would wait for each other. Returns false if a blocking request announced first. If two announce at the same time,
 * only the second finds the other, so exactly one continues to wait.
 */
async function announce(grant: Grant, to: Partial<LockExtent>): Promise<boolean> {
  grant.mustHold();
  // Set before the append: if the reply is lost, the table may have the announcement.
  grant.announcement = "maybe written";
  const entry = await grant.locks.table.append((state, { change }) => {
    const { requests } = state;
    const mine = grant.findRequest(requests);
    if (mine === undefined) return undefined;
    const claims = withExtent(grant.claims, to);
    if (conflictingOf(requests, { ...mine, claims }).some((other) => waitsFor(other, mine, requests))) return undefined;
    return replaceRequest(state, mine, { ...mine, change, wants: widestExtent(claims) });
  });
  if (entry === undefined) grant.announcement = "none";
  return entry !== undefined;
}
