// How a request gets into the lock table, and how it waits there until every earlier one that
// conflicts with it is over.
import type { Deadline } from "../../durable/wait/deadline.ts";
import { holdfastError } from "../../errors.ts";
import { pathsOf } from "./claim.ts";
import { ChangeWaiter } from "../../durable/wait/change-waiter.ts";
import { blockersOf, conflictsWith, findDeadlock, overtakenBy } from "./conflict.ts";
import { deadlock } from "./describe.ts";
import type { LockTable } from "./lock-table.ts";
import type { TableRequest, TableState } from "./request.ts";

/** What a caller knows of its request. The append adds the rest. */
export type WantedRequest = Pick<TableRequest, "holder" | "claims" | "sinceMs" | "tag" | "within">;

/** A request in the table, and the table as its append made it. */
export interface Enqueued {
  readonly request: TableRequest;
  readonly state: TableState;
  /** The earlier requests that conflict with it. */
  readonly blockers: readonly TableRequest[];
}

export interface EnqueueOptions {
  /** Whether the request may wait in the table. */
  readonly wait: boolean;
  /** Throws when the caller must not go on. */
  readonly mustGoOn: () => void;
}

/**
 * Appends a request. Without `wait` only if no live request blocks it; else nothing is appended,
 * and the answer has only the live blockers. Dead blockers are judged in the same call, and dropped
 * by the same append. DEADLOCK when the request would wait for one that waits for it.
 */
export async function enqueue(
  table: LockTable,
  wanted: WantedRequest,
  { wait, mustGoOn }: EnqueueOptions,
): Promise<Enqueued | Pick<Enqueued, "blockers">> {
  for (;;) {
    mustGoOn();
    let blockers: TableRequest[] = [];
    let cycle: TableRequest[] | undefined;
    let overtaken: TableRequest[] = [];
    const entry = await table.request(({ requests, redos }, made) => {
      const request: TableRequest = { ...made, ...wanted };
      const longer = [...requests, request];
      overtaken = overtakenBy(longer, request);
      blockers = [...new Set([...blockersOf(longer, request), ...overtaken])];
      cycle = wait ? findDeadlock(longer, request) : undefined;
      if (cycle !== undefined || overtaken.length > 0 || (blockers.length > 0 && !wait)) return undefined;
      return { requests: longer, redos };
    });
    if (entry !== undefined) {
      const request = entry.state.requests.find(({ id }) => id === entry.id);
      if (request !== undefined) return { request, state: entry.state, blockers };
    } else if (cycle !== undefined) await throwIfDeadlock(table, cycle);
    else if (wait) await throwIfOvertaking(table, wanted, overtaken);
    else {
      const living = await table.judge(blockers, { once: true });
      if (living.length > 0) return { blockers: living };
    }
  }
}

export interface WaitOptions {
  readonly deadline: Deadline;
  /** Throws when the caller must not go on. */
  readonly mustGoOn: () => void;
  /** Of the process that waits. */
  readonly leaseMs: number;
}

/**
 * After this part of the shortest lease all blockers are judged again: often enough that the
 * silence of each of them counts in full, and so seldom that many waiters do not spend their time
 * on judging each other.
 */
const roundPart = 1 / 8;

/**
 * Resolves when every one of `blockers` is over: released by its owner, or dropped by an append.
 * LOCK_LOST when the waiting request was dropped itself.
 */
export async function waitForBlockers(
  table: LockTable,
  { request, blockers }: Pick<Enqueued, "request" | "blockers">,
  { deadline, mustGoOn, leaseMs }: WaitOptions,
): Promise<void> {
  const { clock } = table.ground.ports;
  const waiter = new ChangeWaiter(table.ground.ports);
  let roundAtMs = clock.monotonicMs();
  let left = blockers;
  // The last one first: it waits for those before it, so they are mostly over when it is, and a
  // release wakes one waiter and not all.
  for (let last = left.at(-1); last !== undefined; last = left.at(-1)) {
    const { id } = last;
    if ((await waiter.wait(table.holds.pathOf(id), () => table.isOver(id), deadline)) === "over") {
      left = left.slice(0, -1);
      continue;
    }
    mustGoOn();
    const isRound = clock.monotonicMs() - roundAtMs >= roundPart * table.ground.shortestLeaseMs(left, leaseMs);
    if (isRound) roundAtMs = clock.monotonicMs();
    await dropDead(table, left, { isRound });
    left = await stillBlocking(table, request, left);
  }
  // After the last look, because it is acted on: a process that slept over it may have been dropped
  // meanwhile.
  mustGoOn();
  if (await table.isOver(request.id)) throw droppedError(request);
}

/**
 * Judges the last of `blockers` at each poll, and all of them in a round or when the last one is
 * dead: the holders of one machine die and stop together. One append drops all that are dead.
 */
async function dropDead(
  table: LockTable,
  blockers: readonly TableRequest[],
  { isRound }: { readonly isRound: boolean },
): Promise<void> {
  const judged = isRound ? blockers : blockers.slice(-1);
  const living = await table.judge(judged, { once: false });
  if (!isRound && living.length === 0) await table.judge(blockers, { once: false });
  await table.drop([]);
}

/**
 * Those of `blockers` that are listed and still conflict with `request`, as the table has both now.
 */
async function stillBlocking(
  table: LockTable,
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
    // A blocker that was downgraded since may admit this request.
    else if (conflictsWith(mine.claims, now.claims)) left.push(blocker);
  }
  return left;
}

/** DEADLOCK, unless a member of the cycle is over: then the caller tries again. */
async function throwIfDeadlock(table: LockTable, requests: readonly TableRequest[]): Promise<void> {
  if ((await table.judge(requests, { once: true })).length < requests.length) return;
  const path = pathsOf(requests.at(-1)?.claims ?? []);
  const message = `Waiting would never end: the holder of what is asked for waits for ${path}, which this hold is within. Release this hold and acquire both at once.`;
  throw await deadlock(table.ground, path, requests, message);
}

/** DEADLOCK, unless one of `overtaken` is over: then the caller tries again. */
async function throwIfOvertaking(
  table: LockTable,
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
  const message = `The request for ${path} was dropped while it waited: it was broken, or this process was taken for dead.`;
  return holdfastError("LOCK_LOST", message, { path, fence });
}
