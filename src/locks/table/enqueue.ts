// Standing in the list of requests: how a request gets into it, and how it waits there until every earlier one that conflicts is over.
import type { Deadline } from "../../durable/wait/deadline.ts";
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { holdfastError } from "../../errors.ts";
import type { Claim } from "./claim.ts";
import { ChangeWaiter } from "../../durable/wait/change-waiter.ts";
import { blockersOf, conflictsWith, findDeadlock, overtakenBy } from "./conflict.ts";
import type { LockTable } from "./lock-table.ts";
import type { LockRequestRecord, Table } from "./request.ts";

export interface RequestOptions {
  readonly claims: readonly Claim[];
  readonly life: HolderSession;
  readonly tag?: string | undefined;
  readonly within?: string | undefined;
}

/** In the list, at the end of it when it was made. */
export interface QueuedRequest {
  readonly request: LockRequestRecord;
  readonly table: Table;
  readonly blockers: readonly LockRequestRecord[];
}

/** Nothing was appended: these live ones stand in the way. */
export interface RefusedRequest {
  readonly blockers: readonly LockRequestRecord[];
}

/**
 * Appends a request. Without `wait` only if nobody alive stands in its way: the dead are judged in this one try, and dropped by the same append. DEADLOCK when
 * it would wait for somebody who waits for it.
 */
export async function enqueue(
  table: LockTable,
  wanted: RequestOptions,
  options: { readonly wait: boolean },
): Promise<QueuedRequest | RefusedRequest> {
  const { claims, life, tag, within } = wanted;
  const sinceMs = Math.floor(table.ground.ports.clock.wallMs());
  for (;;) {
    life.throwIfOver();
    let blockers: LockRequestRecord[] = [];
    let circle: LockRequestRecord[] | undefined;
    let overtaken: LockRequestRecord[] = [];
    const make = (
      { requests, redos }: Table,
      made: Pick<LockRequestRecord, "id" | "fence" | "change">,
    ): Table | undefined => {
      const request: LockRequestRecord = {
        ...made,
        holder: life.holder.id,
        claims,
        sinceMs,
        ...(tag === undefined ? {} : { tag }),
        ...(within === undefined ? {} : { within }),
      };
      const longer = [...requests, request];
      overtaken = overtakenBy(longer, request);
      blockers = [...new Set([...blockersOf(longer, request), ...overtaken])];
      circle = options.wait ? findDeadlock(longer, request) : undefined;
      if (circle !== undefined || overtaken.length > 0 || (blockers.length > 0 && !options.wait)) return undefined;
      return { requests: longer, redos };
    };
    const entry = await table.request(make);
    if (entry !== undefined) {
      const request = entry.state.requests.find(({ id }) => id === entry.id);
      if (request !== undefined) return { request, table: entry.state, blockers };
    } else if (circle !== undefined) await mustStillWait(table, circle);
    else if (options.wait) await mustStillOvertake(table, claims, overtaken);
    else {
      const living = await table.judge(blockers, { once: true });
      if (living.length > 0) return { blockers: living };
    }
  }
}

export interface WaitOptions {
  readonly deadline: Deadline;
  /** Throws when what the one who waits is part of is over. */
  readonly mustGoOn: () => void;
  /** Of the process that waits. */
  readonly leaseMs: number;
}

/**
 * After so much of the shortest lease all who stand in the way are looked at again: often enough that the silence of each of
 * them counts in full, and so seldom that a crowd of waiters is not busy with looking at each other.
 */
const roundPart = 1 / 8;

/**
 * Resolves when every one of `blockers` is over: released by its owner, or dropped by an append. LOCK_LOST when the request
 * that waits was dropped itself.
 */
export async function waitFor(
  table: LockTable,
  { request, blockers }: QueuedRequest,
  { deadline, mustGoOn, leaseMs }: WaitOptions,
): Promise<void> {
  const { clock } = table.ground.ports;
  const bell = new ChangeWaiter(table.ground.ports);
  let roundAtMs = clock.monotonicMs();
  let left = blockers;
  // The last one first: it waits for those before it, so when it is over they mostly are too, and a hand-over wakes one
  // waiter and not all.
  for (let last = left.at(-1); last !== undefined; last = left.at(-1)) {
    const { id } = last;
    if ((await bell.wait(table.holdFile(id), () => table.isOver(id), deadline)) === "over") {
      left = left.slice(0, -1);
      continue;
    }
    mustGoOn();
    const isRound = clock.monotonicMs() - roundAtMs >= roundPart * table.ground.shortestLeaseMs(left, leaseMs);
    if (isRound) roundAtMs = clock.monotonicMs();
    await dropDead(table, left, { isRound });
    left = await stillBlocking(table, request, left);
  }
  // After the last look, because it is acted on: a process that slept over it may have been dropped meanwhile.
  mustGoOn();
  if (await table.isOver(request.id)) throw dropped(request);
}

/**
 * Judges the last of `blockers` at each poll, and all of them in a round, or when one was found dead: holders die and stand
 * still together, with their machine. All that are dead are dropped by one append.
 */
async function dropDead(
  table: LockTable,
  blockers: readonly LockRequestRecord[],
  { isRound }: { readonly isRound: boolean },
): Promise<void> {
  const judged = isRound ? blockers : blockers.slice(-1);
  const living = await table.judge(judged, { once: false });
  if (!isRound && living.length === 0) await table.judge(blockers, { once: false });
  await table.drop([]);
}

/** Those of `blockers` that are listed and conflict with `request` as both stand in the list now. */
async function stillBlocking(
  table: LockTable,
  request: LockRequestRecord,
  blockers: readonly LockRequestRecord[],
): Promise<readonly LockRequestRecord[]> {
  const { state } = await table.read();
  const listed = new Map(state.requests.map((each) => [each.id, each]));
  const mine = listed.get(request.id);
  if (mine === undefined) throw dropped(request);
  const left: LockRequestRecord[] = [];
  for (const blocker of blockers) {
    const now = listed.get(blocker.id);
    if (now === undefined) {
      if (!(await table.isOver(blocker.id))) await table.finishDropped(blocker, state);
    }
    // One that was narrowed since may stand beside us.
    else if (conflictsWith(mine.claims, now.claims)) left.push(blocker);
  }
  return left;
}

/** A circle of which somebody has let go is none. */
async function mustStillWait(table: LockTable, circle: readonly LockRequestRecord[]): Promise<void> {
  if ((await table.judge(circle, { once: true })).length < circle.length) return;
  const path =
    circle
      .at(-1)
      ?.claims.map((claim) => claim.path)
      .join(", ") ?? "";
  const holders = await Promise.all(circle.map(({ holder }) => table.ground.findHolder(holder)));
  const cycle = holders.filter((holder) => holder !== undefined);
  const message = `Waiting would never end: whoever holds what is asked for waits for ${path}, which this hold is within. Release it and take both at once.`;
  throw holdfastError("DEADLOCK", message, { path, cycle });
}

/** DEADLOCK, unless one of `overtaken` is over: then it is tried again. */
async function mustStillOvertake(
  table: LockTable,
  claims: readonly Claim[],
  overtaken: readonly LockRequestRecord[],
): Promise<void> {
  if ((await table.judge(overtaken, { once: true })).length < overtaken.length) return;
  const pathsOf = (each: readonly Claim[]): string => each.map(({ path }) => path || ".").join(", ");
  const path = pathsOf(claims);
  const holders = await Promise.all(overtaken.map(({ holder }) => table.ground.findHolder(holder)));
  const waited = pathsOf(overtaken.flatMap((request) => request.claims));
  const message = `${path} cannot be locked within this hold, which covers a part of it: another process waits for ${waited}, has its fence, and comes after this hold. Ask for what this hold does not cover alone, or release it and take all at once.`;
  throw holdfastError("DEADLOCK", message, { path, cycle: holders.filter((holder) => holder !== undefined) });
}

function dropped({ claims, fence }: LockRequestRecord): Error {
  const path = claims.map((claim) => claim.path).join(", ");
  const message = `The request for ${path} was dropped while it waited: somebody broke it, or took this process for dead.`;
  return holdfastError("LOCK_LOST", message, { path, fence });
}
