// Adds a request to the lock table, and waits there until every earlier one that conflicts with it is over.
import type { Deadline } from "../../durable/wait/deadline.ts";
import { holdfastError } from "../../errors.ts";
import { pathsOf, conflictingOf, conflictsWith, findDeadlock, overtakenBy } from "./conflict.ts";
import { ChangeWaiter } from "../../durable/wait/change-waiter.ts";
import { deadlock } from "./describe.ts";
import { dropDead } from "./drop-dead.ts";
import type { RequestTable } from "./request-table.ts";
import type { TableRequest, TableState } from "./request.ts";

/** The part of a request that its caller provides. The append adds the rest. */
export type WantedRequest = Pick<TableRequest, "holder" | "claims" | "sinceMs" | "tag" | "within">;

/** A request in the table, and the state of the table after its append. */
export interface Enqueued {
  readonly request: TableRequest;
  readonly state: TableState;
  /** The earlier requests that conflict with it. */
  readonly blockers: readonly TableRequest[];
}

export interface EnqueueOptions {
  /** False: the request is appended only if nothing blocks it. */
  readonly wait: boolean;
  /** Throws if the caller must not continue. */
  readonly mustGoOn: () => void;
}

/**
 * Appends a request. Without `wait`, appends it only if no live request blocks it; otherwise returns the live
 * blockers. The same call judges dead blockers, and the same append drops them. Throws DEADLOCK if the request would
 * wait for one that waits for it.
 */
export async function enqueue(
  table: RequestTable,
  wanted: WantedRequest,
  { wait, mustGoOn }: EnqueueOptions,
): Promise<Enqueued | Pick<Enqueued, "blockers">> {
  for (;;) {
    mustGoOn();
    let request: TableRequest | undefined;
    let blockers: TableRequest[] = [];
    let cycle: TableRequest[] | undefined;
    let overtaken: TableRequest[] = [];
    const entry = await table.request(({ requests, redos }, made) => {
      request = { ...made, ...wanted };
      const longer = [...requests, request];
      overtaken = overtakenBy(longer, request);
      blockers = [...new Set([...conflictingOf(requests, request), ...overtaken])];
      cycle = wait ? findDeadlock(longer, request) : undefined;
      if (cycle !== undefined || overtaken.length > 0 || (blockers.length > 0 && !wait)) return undefined;
      return { requests: longer, redos };
    });
    // The change was last derived for the slot that was won, so `request` is the one in that slot.
    if (entry !== undefined && request !== undefined) return { request, state: entry.state, blockers };
    if (cycle !== undefined) await throwIfDeadlock(table, cycle);
    else if (wait) await throwIfOvertaking(table, wanted, overtaken);
    else {
      const living = await table.judge(blockers, { once: true });
      if (living.length > 0) return { blockers: living };
    }
  }
}

export interface WaitOptions {
  readonly deadline: Deadline;
  /** Throws if the caller must not continue. */
  readonly mustGoOn: () => void;
  /** The lease of the process that waits. */
  readonly leaseMs: number;
}

/**
 * After this part of the shortest lease all blockers are judged again. That is often enough for the silence of each
 * to count in full, and so seldom that many waiters do not spend their time judging each other.
 */
const roundPart = 1 / 8;

/**
 * Resolves when all of `blockers` are over: released by their owners, or dropped by an append. Throws LOCK_LOST if
 * the waiting request itself was dropped.
 */
export async function waitForBlockers(
  table: RequestTable,
  { request, blockers }: Pick<Enqueued, "request" | "blockers">,
  { deadline, mustGoOn, leaseMs }: WaitOptions,
): Promise<void> {
  const { clock } = table.ground.ports;
  const waiter = new ChangeWaiter(table.ground);
  let roundAtMs = clock.monotonicMs();
  let left = blockers;
  // Wait for the last one first: it waits for those before it, so they are usually over when it is, and a release
  // wakes one waiter instead of all.
  for (let last = left.at(-1); last !== undefined; last = left.at(-1)) {
    const { id } = last;
    if ((await waiter.wait(table.markOf(id), () => table.isOver(id), deadline)) === "over") {
      left = left.slice(0, -1);
      continue;
    }
    mustGoOn();
    const isRound = clock.monotonicMs() - roundAtMs >= roundPart * table.ground.shortestLeaseMs(left, leaseMs);
    if (isRound) roundAtMs = clock.monotonicMs();
    await dropDead(table, left, { isRound });
    left = await stillBlocking(table, request, left);
  }
  // Check after reading the table, because the caller acts on it: a process that slept meanwhile may have been
  // dropped.
  mustGoOn();
  if (await table.isOver(request.id)) throw droppedError(request);
}

/** Returns those of `blockers` that the table still lists and that still conflict with `request`, as both are now. */
async function stillBlocking(
  table: RequestTable,
  request: TableRequest,
  blockers: readonly TableRequest[],
): Promise<readonly TableRequest[]> {
  const { state } = await table.read();
  const listed = new Map(state.requests.map((each) => [each.id, each]));
  const mine = listed.get(request.id);
  if (mine === undefined) throw droppedError(request);
  const left: TableRequest[] = [];
  for (const blocker of blockers) {
    const now = listed.get(blocker.id);
    if (now === undefined) {
      if (!(await table.isOver(blocker.id))) await table.finishDropped(blocker, state);
    }
    // If a blocker was downgraded since, it may admit this request.
    else if (conflictsWith(mine.claims, now.claims)) left.push(blocker);
  }
  return left;
}

/** Throws DEADLOCK, unless a member of the cycle is over: then the caller tries again. */
async function throwIfDeadlock(table: RequestTable, requests: readonly TableRequest[]): Promise<void> {
  if ((await table.judge(requests, { once: true })).length < requests.length) return;
  const path = pathsOf(requests.at(-1)?.claims ?? []);
  const message = `Waiting would never end: the holder of what is asked for waits for ${path}, which this hold is within. Release this hold and acquire both at once.`;
  throw await deadlock(table.ground, path, requests, message);
}

/** Throws DEADLOCK, unless one of `overtaken` is over: then the caller tries again. */
async function throwIfOvertaking(
  table: RequestTable,
  { claims }: WantedRequest,
  overtaken: readonly TableRequest[],
): Promise<void> {
  if ((await table.judge(overtaken, { once: true })).length < overtaken.length) return;
  const path = pathsOf(claims);
  const waited = pathsOf(overtaken.flatMap((request) => request.claims));
  const message = `${path} cannot be locked within this hold, which covers a part of it: another process waits for ${waited}, and has a fence that comes after this hold. Ask only for what this hold does not cover, or release it and acquire all at once.`;
  throw await deadlock(table.ground, path, overtaken, message);
}

function droppedError({ claims, fence }: TableRequest): Error {
  const path = pathsOf(claims);
  const message = `The request for ${path} was dropped while it waited: it was broken, or this process was judged dead.`;
  return holdfastError("LOCK_LOST", message, { path, fence });
}
