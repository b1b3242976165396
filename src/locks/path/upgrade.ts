// The width of a hold: how it becomes wider (exact to tree, shared to exclusive), and how the list comes to say what it is.
import type { LockMode, Waiting } from "../../common.ts";
import { checkTimeout, Deadline } from "../../durable/wait/deadline.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { ChangeWaiter } from "../../durable/wait/change-waiter.ts";
import { describeBlockers, holderOf, lockTimeout } from "./describe.ts";
import type { Claim, LockExtent } from "../table/claim.ts";
import { conflictingOf, conflictsWith, covers, overtakenBy } from "../table/conflict.ts";
import type { Grant } from "./grant.ts";
import type { LockTable } from "../table/lock-table.ts";
import { fenceOf, type LockRequestRecord, type Table } from "../table/request.ts";

/** What a caller may ask for: what it leaves out stays as it is. */
export type LockChange = LockMode | { readonly mode?: LockMode | undefined; readonly shared?: boolean | undefined };

export function changed<C extends Claim>(claims: readonly C[], to: LockChange): C[] {
  const { mode, shared } = typeof to === "string" ? { mode: to } : { mode: undefined, shared: undefined, ...to };
  return claims.map((claim) => ({ ...claim, mode: mode ?? claim.mode, shared: shared ?? claim.shared }));
}

/** Whether each of `claims` covers its counterpart. */
export function isAsWide(claims: readonly Claim[], others: readonly Claim[]): boolean {
  return claims.every((claim, index) => covers(claim, others[index] as Claim));
}

/**
 * Replaces the request by a wider one at the end of the list, in one append, so that its fence is above all that were granted before. Refused by every live
 * request that conflicts with the wider one: it is never in the list and waiting at the same time, or somebody who only waits behind it
 * could enter beside it. So waiting means trying again. LOCK_TIMEOUT; DEADLOCK when somebody waits for this very hold.
 */
export async function upgrade(
  table: LockTable,
  grant: Grant,
  to: LockChange,
  { timeoutMs = 0, signal }: Waiting,
): Promise<void> {
  checkTimeout(timeoutMs);
  signal?.throwIfAborted();
  if (!isAsWide(changed(grant.claims, to), grant.claims))
    throw new RangeError(
      "An upgrade goes from exact to tree, or from shared to exclusive; use downgrade for the other way.",
    );
  const { clock } = table.ground.ports;
  const bell = new ChangeWaiter(table.ground.ports);
  const expired = Symbol("expired");
  const deadline = new Deadline(clock, { timeoutMs: Math.max(timeoutMs, 0), signal, timedOut: () => expired });
  let isAnnounced = false;
  try {
    for (;;) {
      const blockers = await grant.duringChange(() => tryToWiden(table, grant, to));
      if (blockers.length === 0) return;
      if (timeoutMs <= 0)
        throw lockTimeout(grant.asked, 0, await describeBlockers(table.ground, blockers, changed(grant.claims, to)));
      isAnnounced ||= await grant.duringChange(() => announce(table, grant, to));
      // Somebody else was faster: the next try tells.
      if (!isAnnounced) continue;
      const [first] = blockers as [LockRequestRecord];
      try {
        await bell.wait(table.holdFile(first.id), () => table.isOver(first.id), deadline);
      } catch (error) {
        if (error !== expired) throw error;
        throw lockTimeout(
          grant.asked,
          timeoutMs,
          await describeBlockers(table.ground, blockers, changed(grant.claims, to)),
        );
      }
    }
  } finally {
    deadline.cancel();
    if (grant.wish === "said") grant.wish = "stale";
    // What cannot be settled now is settled by the watch: the answer to the upgrade is another.
    await settleWidth(table, grant).catch(() => undefined);
  }
}

/** Those who stand in the way; none when it is done. */
async function tryToWiden(table: LockTable, grant: Grant, to: LockChange): Promise<readonly LockRequestRecord[]> {
  grant.mustHold();
  // Before the append: what the outer hold covers is let in without one.
  if (grant.familyPlace?.change(changed(grant.claims, to)) === false) return [await outerOf(table, grant)];
  try {
    return await tryToWidenRequest(table, grant, to);
  } catch (error) {
    if (isHoldfastError(error, "OUTCOME_UNKNOWN")) grant.isWidthInDoubt = true;
    throw error;
  } finally {
    grant.familyPlace?.change(grant.claims);
  }
}

/** The request that covers what stands in the way within the same outer hold. */
async function outerOf(table: LockTable, { parent }: Grant): Promise<LockRequestRecord> {
  const { state } = await table.read();
  const outer = parent && findOwn(state.requests, parent);
  if (parent !== undefined && outer === undefined) throw loseIt(parent);
  return outer as LockRequestRecord;
}

async function tryToWidenRequest(
  table: LockTable,
  grant: Grant,
  to: LockChange,
): Promise<readonly LockRequestRecord[]> {
  for (;;) {
    grant.mustHold();
    let blockers: readonly LockRequestRecord[] = [];
    let circle: readonly LockRequestRecord[] = [];
    let isListed = false;
    const entry = await table.append(({ requests, redos }, { fence, change }) => {
      const mine = findOwn(requests, grant);
      isListed = mine !== undefined;
      if (mine === undefined) return undefined;
      const wider: LockRequestRecord = { ...mine, claims: changed(grant.claims, to), fence, change };
      // They wait for what it is within, so they cannot end before it does.
      const overtaken = overtakenBy([...requests.filter((request) => request !== mine), wider], wider);
      blockers = [...new Set([...conflictingOf(requests, wider), ...overtaken])];
      circle = blockers.filter((other) => overtaken.includes(other) || waitsFor(other, mine, requests));
      if (blockers.length > 0) return undefined;
      return { requests: [...requests.filter((request) => request !== mine), withoutWish(wider)], redos };
    });
    if (entry !== undefined) return await settle(table, grant, entry.state, to);
    if (!isListed) throw loseIt(grant);
    const living = await table.judge(blockers, { once: true });
    const closed = circle.filter((request) => living.includes(request));
    if (closed.length > 0) throw await deadlock(table, grant, closed);
    if (living.length > 0) return living;
  }
}

/** Whether `other` cannot end before `mine` does: it stands behind it, or waits to become what `mine` excludes. */
function waitsFor(other: LockRequestRecord, mine: LockRequestRecord, requests: readonly LockRequestRecord[]): boolean {
  if (requests.indexOf(other) > requests.indexOf(mine) && conflictsWith(other.claims, mine.claims)) return true;
  return other.wants !== undefined && conflictsWith(changed(other.claims, other.wants), mine.claims);
}

async function settle(
  table: LockTable,
  grant: Grant,
  state: Table,
  to: LockChange,
): Promise<readonly LockRequestRecord[]> {
  const mine = findOwn(state.requests, grant);
  if (mine === undefined) throw loseIt(grant);
  grant.wish = "none";
  grant.isWidthInDoubt = false;
  grant.claims = mine.claims;
  grant.asked = changed(grant.asked, to);
  grant.fence = fenceOf(mine);
  grant.raiseOuterFences();
  // What somebody committed below before he died is done before anything is done there under the wider hold.
  await table.completeOrphans(state, (redo) => conflictsWith(mine.claims, redo.claims));
  grant.mustHold();
  return [];
}

/**
 * Says what this hold waits to become, so that another one who widens sees that both would wait for each other. False when somebody in the way has said so
 * before: of two that announce at the same time only the second one finds the other, so one of them goes on waiting.
 */
async function announce(table: LockTable, grant: Grant, to: LockChange): Promise<boolean> {
  grant.mustHold();
  // Before it is tried: if the answer is lost, it may stand there.
  grant.wish = "said";
  const entry = await table.append(({ requests, redos }, { change }) => {
    const mine = findOwn(requests, grant);
    if (mine === undefined) return undefined;
    const claims = changed(grant.claims, to);
    if (conflictingOf(requests, { ...mine, claims }).some((other) => waitsFor(other, mine, requests))) return undefined;
    return { requests: replaced(requests, mine, { ...mine, change, wants: widthOf(claims) }), redos };
  });
  if (entry === undefined) grant.wish = "none";
  return entry !== undefined;
}

/**
 * Makes the list say what the hold is: no wider, and without a wish that is over, which others would take for a reason not to
 * wait.
 */
export async function settleWidth(table: LockTable, grant: Grant): Promise<void> {
  if (isWidthSettled(grant) || !grant.isHeld) return;
  await grant.duringChange(() => tryToSettle(table, grant));
}

function isWidthSettled({ wish, isWidthInDoubt }: Grant): boolean {
  return wish !== "stale" && !isWidthInDoubt;
}

/** Of `settleWidth`, for a caller whose turn it is. */
export async function tryToSettle(table: LockTable, grant: Grant): Promise<void> {
  if (isWidthSettled(grant)) return;
  let isPending = false;
  await table.append(({ requests, redos }, { change }) => {
    const mine = findOwn(requests, grant);
    // What was committed when it was wider is done before others are let into a part.
    isPending = grant.isWidthInDoubt && redos.some(({ request }) => request === mine?.id);
    if (mine === undefined || isPending) return undefined;
    return { requests: replaced(requests, mine, withoutWish({ ...mine, claims: grant.claims, change })), redos };
  });
  if (isPending) return;
  grant.wish = "none";
  grant.isWidthInDoubt = false;
}

/**
 * Whether the list has the request of a grant that had `claims` before the list was read, as wide as they are. A width that
 * was changed since is not compared: the list may be older.
 */
export function isListed(requests: readonly LockRequestRecord[], grant: Grant, claims: readonly Claim[]): boolean {
  const mine = findOwn(requests, grant);
  if (mine === undefined) return false;
  return grant.claims !== claims || claims.every((inner) => mine.claims.some((outer) => covers(outer, inner)));
}

/** Its own: what was given up stands in the list as before when another caller of this process has it now. */
export function findOwn(
  requests: readonly LockRequestRecord[],
  { id, life, isGivenUp }: Grant,
): LockRequestRecord | undefined {
  if (isGivenUp) return undefined;
  return requests.find(
    (request) => request.id === id && request.holder === life.holder.id && request.transfer === undefined,
  );
}

/** Says and remembers that others have dropped it. */
export function loseIt(grant: Grant): Error {
  const reason = grant.lost("somebody broke it, or took this process for dead");
  grant.lose(reason);
  return reason;
}

export function replaced(
  requests: readonly LockRequestRecord[],
  one: LockRequestRecord,
  by: LockRequestRecord,
): LockRequestRecord[] {
  return requests.map((request) => (request === one ? by : request));
}

export function withoutWish({ wants: _wants, ...request }: LockRequestRecord): LockRequestRecord {
  return request;
}

function widthOf(claims: readonly Claim[]): LockExtent {
  const mode = claims.some((claim) => claim.mode === "tree") ? "tree" : "exact";
  return { mode, shared: claims.every((claim) => claim.shared) };
}

async function deadlock(table: LockTable, grant: Grant, circle: readonly LockRequestRecord[]): Promise<Error> {
  const path = grant.asked.map((claim) => claim.path || ".").join(", ");
  const cycle = await Promise.all(circle.map((request) => holderOf(table.ground, request)));
  const message = `${path} cannot be upgraded, because somebody who stands in the way waits for this very hold. Release it and ask for the wider lock instead.`;
  return holdfastError("DEADLOCK", message, { path, cycle });
}
