// Acquiring path locks, from the call to the hold:
//
//   keys        resolve the paths to keys: follow links, fold case             naming/lock-key.ts
//   queue       wait behind callers of this process that conflict              local-queue.ts
//   request     append a request to the lock table: one link makes its hold
//               file, and its number is the fence                              table/enqueue.ts
//   wait        until every earlier request that conflicts is released, or
//               dropped by an append because its holder is dead                table/enqueue.ts
//   complete    apply what dropped holders committed on these paths            table/lock-table.ts
//   keys again  if a key has changed: release the request and start over
//   show        with `interop`: write lock files for foreign programs, then
//               read the table again                                           interop/
//   watch       the monitor checks the hold from now on; return its handle     monitor.ts
//
// Two kinds of callers need neither request nor wait. A caller within a hold that covers its claims
// shares the request of that hold. A caller that wants the same as the caller before it in the queue
// may receive that caller's request.
//
// The keys are resolved again because a symbolic link may have been swapped meanwhile: two callers
// could then hold one file by two keys. Once the lock is held, no other process changes the links.
//
// If a step fails, everything acquired before it is released. One deadline applies to all waits.
import type { Session } from "../../durable/liveness/liveness.ts";
import { checkTimeout, Deadline, leftMsOf } from "../../durable/wait/deadline.ts";
import { holdfastError } from "../../errors.ts";
import { signal as publish } from "../../telemetry/signals.ts";
import type { Keys } from "../naming/lock-key.ts";
import { pathsOf, type Claim, conflictingOf, conflictsWith } from "../table/conflict.ts";
import { lockTimeout, type Blocker } from "../table/describe.ts";
import { enqueue, waitForBlockers, type Enqueued } from "../table/enqueue.ts";
import { fenceOf, type TableRequest } from "../table/request.ts";
import { Grant } from "./grant.ts";
import { HoldHandle } from "./hold-handle.ts";
import type { LocalTurn } from "./local-queue.ts";
import { check } from "./monitor.ts";
import type { PathHold } from "./path-hold.ts";
import type { AcquireManyOptions, AcquireWait, LockRequest } from "./path-locks.ts";
import { release } from "./release.ts";
import type { AnyPathLocks } from "./table-path-locks.ts";

/** A path whose links change at every attempt is given up. */
const attemptsMax = 10;

/** A wait that times out rejects with this. The caller then gets LOCK_TIMEOUT with the blockers. */
const expired: unique symbol = Symbol("expired");

export interface AcquireVerbOptions extends AcquireManyOptions {
  /** The keys of the requests. For a caller that resolves them itself, and resolves them again under the hold. */
  readonly keys?: readonly string[] | undefined;
}

/** One attempt of one caller. */
interface AcquireCall {
  readonly locks: AnyPathLocks;
  /** The claims in the caller's spelling. */
  readonly asked: readonly Claim[];
  /** The same claims as keys. */
  readonly claims: readonly Claim[];
  readonly session: Session;
  readonly wait: AcquireWait;
  readonly tag: string | undefined;
  /** The outer hold, if the caller passed `within`. */
  readonly parent: Grant | undefined;
}

/** Throws LOCK_TIMEOUT and DEADLOCK. */
export async function acquire(
  locks: AnyPathLocks,
  requests: readonly LockRequest[],
  { timeoutMs = locks.timeoutMs ?? 0, signal, tag, within, idleMs, keys }: AcquireVerbOptions,
): Promise<PathHold> {
  checkTimeout(timeoutMs);
  signal?.throwIfAborted();
  const wait = { timeoutMs, signal, startMs: locks.clock.monotonicMs() };
  const parent = within === undefined ? undefined : locks.grantOf(within);
  const asked = claimsOf(requests, locks.keys);
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    locks.closed.throwIfAborted();
    const session = await locks.table.ground.session();
    parent?.mustHold();
    const claims = keys === undefined ? await resolveKeys(locks.keys, asked) : withKeys(asked, keys);
    const call: AcquireCall = { locks, asked, claims, session, wait, tag, parent };
    const turn = await takeTurn(call);
    const grant = await becomeHolder(call, turn);
    if (keys !== undefined || (await hasSameKeys(grant))) return await handToCaller(grant, { ...wait, idleMs });
    await release(grant);
  }
  const path = pathsOf(asked);
  const message = `${path} leads somewhere else each time its symbolic links are followed.`;
  throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
}

/** Returns the claims of `requests`, with clean paths in the caller's spelling. Throws INVALID_PATH. */
function claimsOf(requests: readonly LockRequest[], keys: Pick<Keys, "clean">): Claim[] {
  return requests.map(({ path, mode = "exact", shared = false }) => ({ path: keys.clean(path), mode, shared }));
}

async function resolveKeys(keys: Keys, asked: readonly Claim[]): Promise<Claim[]> {
  const claims: Claim[] = [];
  for (const claim of asked) claims.push({ ...claim, path: await keys.keyOf(claim.path) });
  return claims;
}

function withKeys(asked: readonly Claim[], keys: readonly string[]): Claim[] {
  return asked.map((claim, index) => ({ ...claim, path: keys[index] ?? claim.path }));
}

/** Resolves the keys again, and returns whether they are the same. Releases the grant if that fails. */
async function hasSameKeys(grant: Grant): Promise<boolean> {
  try {
    const again = await resolveKeys(grant.locks.keys, grant.asked);
    return again.every(({ path }, index) => path === grant.claims[index]?.path);
  } catch (error) {
    await release(grant);
    throw error;
  }
}

/**
 * Waits in the queue of all callers of this process, or in that of the family if the caller passed `within`. The
 * table does not list claims that the outer hold covers, so only the family's queue makes the holds of one family
 * exclude each other.
 */
async function takeTurn(call: AcquireCall): Promise<LocalTurn<Grant>> {
  const { locks, claims, tag, session, parent } = call;
  const queue = parent?.familyQueue ?? locks.queue;
  const within = parent?.familyTurn;
  const note = { sinceMs: Math.floor(locks.clock.wallMs()), tag };
  const turn = queue.tryEnter(claims, within, note);
  if (turn !== undefined) return turn;
  // Remember the blockers now: when the time is up, they may just have left.
  const findBefore = queue.findBlockers(claims, within);
  const findBlockers = async (): Promise<readonly Blocker[]> => {
    const conflicting = await findConflicting(call);
    if (conflicting.length > 0) return conflicting;
    return findBefore().map((caller) => ({ ...caller, holder: session.holder.id }));
  };
  if (leftMs(call) <= 0) throw await timedOut(call, await findBlockers());
  return await waiting(call, (deadline) => queue.enter(claims, deadline, within, note), findBlockers);
}

/** Turns a place in the queue into a request that holds. Leaves the queue if that fails. */
async function becomeHolder(call: AcquireCall, turn: LocalTurn<Grant>): Promise<Grant> {
  const { claims, parent } = call;
  try {
    if (turn.passed !== undefined) return await takeOver(call, turn, turn.passed);
    parent?.mustHold();
    if (parent?.covers(claims)) return shareRequest(call, turn, parent);
    const queued = await appendRequest(call);
    try {
      await waitInTable(call, queued);
    } catch (error) {
      await call.locks.table.release(queued.request.id).catch(() => undefined);
      throw error;
    }
    return grantOf(call, turn, queued.request);
  } catch (error) {
    turn.leave();
    throw error;
  }
}

/** Takes over the request of `last`, the caller before this one in the queue. */
async function takeOver({ locks, asked, claims }: AcquireCall, turn: LocalTurn<Grant>, last: Grant): Promise<Grant> {
  const { id, session, fence, passes, requestedMs } = last;
  try {
    locks.closed.throwIfAborted();
    session.throwIfOver();
  } catch (error) {
    await locks.table.release(id).catch(() => undefined);
    throw error;
  }
  const next = { fence: fence + 1, passes: passes + 1, sinceMs: locks.clock.wallMs() };
  return new Grant(locks, { id, session, asked, claims, turn, requestedMs, ...next });
}

/**
 * Shares the request of the hold that covers the claims: every process that conflicts with them also conflicts with
 * that request.
 */
function shareRequest({ locks, session, asked, claims }: AcquireCall, turn: LocalTurn<Grant>, parent: Grant): Grant {
  const { id, fence } = parent;
  const sinceMs = locks.clock.wallMs();
  return new Grant(locks, { id, session, asked, claims, turn, fence, sinceMs, parent, isCovered: true });
}

/** Throws LOCK_TIMEOUT if the caller does not wait and a living holder blocks it. Then nothing is appended. */
async function appendRequest(call: AcquireCall): Promise<Enqueued> {
  const { locks, claims, session, tag, parent } = call;
  const wanted = {
    holder: session.holder.id,
    claims,
    sinceMs: Math.floor(locks.clock.wallMs()),
    ...(tag === undefined ? {} : { tag }),
    ...(parent === undefined ? {} : { within: parent.id }),
  };
  const mustGoOn = (): void => session.throwIfOver();
  const queued = await enqueue(locks.table, wanted, { wait: leftMs(call) > 0, mustGoOn });
  if (!("request" in queued)) throw await timedOut(call, queued.blockers);
  return queued;
}

/** Waits until the request holds: no earlier one conflicts, and committed changes of dropped holders are applied. */
async function waitInTable(call: AcquireCall, { request, state, blockers }: Enqueued): Promise<void> {
  const { locks, claims, session, parent } = call;
  const { table } = locks;
  const mustGoOn = (): void => {
    session.throwIfOver();
    parent?.mustHold();
  };
  const { leaseMs } = session.holder;
  if (blockers.length > 0)
    await waiting(
      call,
      (deadline) => waitForBlockers(table, { request, blockers }, { deadline, mustGoOn, leaseMs }),
      async () => {
        const standing = await table.standing(blockers);
        // If the last blocker ended just as the time was up, name those that blocked before.
        return standing.length > 0 ? standing : blockers;
      },
    );
  await table.completeOrphans(state, (redo) => conflictsWith(claims, redo.claims));
  mustGoOn();
  locks.closed.throwIfAborted();
}

function grantOf(
  { locks, session, asked, claims, parent }: AcquireCall,
  turn: LocalTurn<Grant>,
  request: TableRequest,
): Grant {
  const times = { sinceMs: locks.clock.wallMs(), requestedMs: locks.clock.monotonicMs() };
  return new Grant(locks, { id: request.id, session, asked, claims, turn, fence: fenceOf(request), parent, ...times });
}

/**
 * Hands a grant to its caller. Writes the lock files for foreign programs first, because the caller relies on them.
 */
export async function handToCaller(
  grant: Grant,
  { idleMs, ...wait }: AcquireWait & { readonly idleMs?: number | undefined },
): Promise<PathHold> {
  const { interop, closed, monitor } = grant.locks;
  try {
    if (interop !== undefined && !grant.isCovered) {
      await interop.show(grant, grant.asked, wait);
      // Writing them may have taken long, and the hold may have been broken meanwhile.
      await check(grant);
    }
    // If the outer hold has ended or the caller has given up, nobody would release this one.
    grant.mustHold();
    closed.throwIfAborted();
    wait.signal?.throwIfAborted();
  } catch (error) {
    // The caller gets the first error. The monitor retries a failed release.
    await release(grant).catch(() => undefined);
    throw error;
  }
  const hold = new HoldHandle(grant);
  monitor.begin(grant, hold, idleMs);
  return hold;
}

/** Waits only for the remaining time. LOCK_TIMEOUT names the requests that `findBlockers` then returns. */
async function waiting<T>(
  call: AcquireCall,
  wait: (deadline: Deadline) => Promise<T>,
  findBlockers: () => Promise<readonly Blocker[]>,
): Promise<T> {
  const { signal } = call.wait;
  const { clock, closed } = call.locks;
  const deadline = new Deadline(clock, { timeoutMs: leftMs(call), signal, closed, timedOut: () => expired });
  const about = { location: call.locks.root, path: pathsOf(call.asked) };
  const beganMs = clock.monotonicMs();
  let acquired = false;
  // A standby of a consumer waits for its lease as long as it runs: that is no news.
  const { isOfUser } = call.locks;
  if (isOfUser) publish("holdfast:lock.waiting", () => about);
  try {
    const result = await wait(deadline);
    acquired = true;
    return result;
  } catch (error) {
    signal?.throwIfAborted();
    throw error === expired ? await timedOut(call, await findBlockers()) : error;
  } finally {
    deadline.cancel();
    if (isOfUser)
      publish("holdfast:lock.waited", () => ({ ...about, waitedMs: clock.monotonicMs() - beganMs, acquired }));
  }
}

function leftMs({ locks, wait }: AcquireCall): number {
  return leftMsOf(locks.clock, wait);
}

async function findConflicting({ locks: { table }, claims }: AcquireCall): Promise<TableRequest[]> {
  const { state } = await table.read();
  return conflictingOf(await table.standing(state.requests), { id: "", claims });
}

async function timedOut(
  { locks, asked, claims, wait, parent }: AcquireCall,
  blockers: readonly Blocker[],
): Promise<Error> {
  // Requests that wait for the outer hold may block this one as well.
  const all = [...claims, ...(parent?.claims ?? [])];
  const waitedMs = Math.max(0, Math.round(wait.timeoutMs ?? 0));
  return await lockTimeout(locks.table.ground, { asked, claims: all }, waitedMs, blockers);
}
