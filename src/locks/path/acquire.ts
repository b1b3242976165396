// Acquiring: how a caller of this process comes to a hold. In this order:
//   1. The paths become keys: symbolic links are followed, and names folded where the disk folds
//      them.
//   2. The caller waits in a queue of this process, so that of callers that conflict only one goes
//      on at a time. Within another hold that is the queue of the family, else the one of all
//      callers.
//   3. It gets a request that holds, by the first of these ways that is open:
//      a. the hold that it is within covers its claims: it shares the request of that hold;
//      b. the caller before it in the queue wanted the same: that one has passed its request on;
//      c. it appends a request to the lock table, and waits until every earlier one that conflicts
//         is over. Then it completes what dropped holders committed on these paths.
//   4. The paths become keys again, now that no other process may change what is there. If a key
//      has changed, because a symbolic link was swapped meanwhile, the caller gives the request
//      back and begins again: else two callers could hold one file by two keys.
//   5. With `interop` it writes lock files for foreign programs, and checks against the table that
//      it still holds.
//   6. The monitor begins to watch the hold, and the caller gets it.
// A failure at any step gives back what the caller has by then. The deadline counts over all of the
// waits.
import type { HolderSession } from "../../durable/liveness/holder-session.ts";
import { checkTimeout, Deadline, leftMsOf } from "../../durable/wait/deadline.ts";
import { holdfastError } from "../../errors.ts";
import { pathsOf, type Claim } from "../table/claim.ts";
import { conflictingOf, conflictsWith } from "../table/conflict.ts";
import { lockTimeout, type Blocker } from "../table/describe.ts";
import { enqueue, waitForBlockers } from "../table/enqueue.ts";
import { fenceOf, type TableRequest } from "../table/request.ts";
import { claimsOf } from "./arguments.ts";
import { Grant } from "./grant.ts";
import type { LocalQueue, LocalTurn } from "./local-queue.ts";
import { PathHoldHandle, type LocksContext } from "./hold-verbs.ts";
import type { PathHold } from "./path-hold.ts";
import type { AcquireManyOptions, AcquireWait, LockRequest } from "./path-locks.ts";

/** A path that leads elsewhere each time its links are followed is no path. */
const attemptsMax = 10;

/**
 * What a wait rejects with when the time is up. The caller is told instead which requests were in
 * the way.
 */
const expired: unique symbol = Symbol("expired");

/** LOCK_TIMEOUT, DEADLOCK. */
export async function acquire(
  locks: LocksContext,
  requests: readonly LockRequest[],
  { timeoutMs = locks.timeoutMs ?? 0, signal, tag, within, idleMs }: AcquireManyOptions,
): Promise<PathHold> {
  checkTimeout(timeoutMs);
  signal?.throwIfAborted();
  const wait = { timeoutMs, signal, startMs: locks.table.ground.ports.clock.monotonicMs() };
  const parent = within === undefined ? undefined : PathHoldHandle.grantOf(within, locks);
  const asked = claimsOf(requests, locks.keys);
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    locks.closed.throwIfAborted();
    const session = await locks.table.ground.session();
    parent?.mustHold();
    const claims = await keysOf(locks, asked);
    const grant = await new Acquisition(locks, { asked, claims, session, wait, tag, parent }).run();
    const again = await keysOf(locks, asked).catch(async (error: unknown) => {
      await locks.verbs.release(locks, grant);
      throw error;
    });
    if (again.every(({ path }, index) => path === claims[index]?.path))
      return await giveOut(locks, grant, { ...wait, idleMs });
    await locks.verbs.release(locks, grant);
  }
  const path = pathsOf(asked);
  const message = `${path} leads somewhere else each time its symbolic links are followed.`;
  throw holdfastError("RESOURCE_BUSY", message, { path, blockedBy: [], worthWaiting: true });
}

async function keysOf({ keys }: LocksContext, asked: readonly Claim[]): Promise<Claim[]> {
  const claims: Claim[] = [];
  for (const claim of asked) claims.push({ ...claim, path: await keys.keyOf(claim.path) });
  return claims;
}

/** What one caller wants, and how it gets it. */
interface Wanted {
  /** In the caller's spelling. */
  readonly asked: readonly Claim[];
  /** The same as keys. */
  readonly claims: readonly Claim[];
  readonly session: HolderSession;
  readonly wait: AcquireWait;
  readonly tag: string | undefined;
  readonly parent: Grant | undefined;
}

/** One attempt of one caller: from its queue to a grant. */
class Acquisition {
  readonly #locks: LocksContext;
  readonly #wanted: Wanted;

  constructor(locks: LocksContext, wanted: Wanted) {
    this.#locks = locks;
    this.#wanted = wanted;
  }

  async run(): Promise<Grant> {
    const { parent } = this.#wanted;
    if (parent === undefined) {
      const turn = await this.#enter(this.#locks.queue);
      return await this.#orLeave(turn, () => (turn.passed === undefined ? this.#request(turn) : this.#takeOn(turn)));
    }
    // Other processes that conflict with a covered claim conflict with the parent. Only the other
    // holds of its family do not: so all of them exclude each other in a queue of their own, those
    // with a request of their own too.
    const turn = await this.#enter(parent.familyQueue, parent.familyTurn);
    return await this.#orLeave(turn, () => this.#requestWithin(parent, turn));
  }

  async #enter<T>(queue: LocalQueue<T>, within?: string): Promise<LocalTurn<T>> {
    const { claims, tag, session } = this.#wanted;
    const note = { sinceMs: Math.floor(this.#clock.wallMs()), tag };
    const turn = queue.tryEnter(claims, within, note);
    if (turn !== undefined) return turn;
    // Asked for now: when the time is up, the one in the way may just have left.
    const findBefore = queue.inTheWayOf(claims, within);
    const findBlockers = async (): Promise<readonly Blocker[]> => {
      const conflicting = await this.#findConflicting();
      if (conflicting.length > 0) return conflicting;
      return findBefore().map((caller) => ({ ...caller, holder: session.holder.id }));
    };
    if (this.#leftMs <= 0) throw await this.#timedOut(await findBlockers());
    return await this.#waiting((deadline) => queue.enter(claims, deadline, within, note), findBlockers);
  }

  async #orLeave(turn: LocalTurn<Grant>, work: () => Promise<Grant>): Promise<Grant> {
    try {
      return await work();
    } catch (error) {
      turn.leave();
      throw error;
    }
  }

  /** The request that the caller before it in the queue has passed on. */
  async #takeOn(turn: LocalTurn<Grant>): Promise<Grant> {
    const { asked, claims } = this.#wanted;
    const { id, session, fence, passes, requestedMs } = turn.passed as Grant;
    try {
      this.#locks.closed.throwIfAborted();
      session.throwIfOver();
    } catch (error) {
      await this.#locks.table.release(id).catch(() => undefined);
      throw error;
    }
    const sinceMs = this.#clock.wallMs();
    const next = { fence: fence + 1, passes: passes + 1, sinceMs };
    return new Grant({ id, session, asked, claims, turn, requestedMs, ...next });
  }

  async #requestWithin(parent: Grant, turn: LocalTurn<never>): Promise<Grant> {
    parent.mustHold();
    const { asked, claims, session } = this.#wanted;
    if (!parent.covers(claims)) return await this.#request(turn);
    const { id, fence } = parent;
    const sinceMs = this.#clock.wallMs();
    return new Grant({ id, session, asked, claims, turn, fence, sinceMs, parent, isCovered: true });
  }

  async #request(turn: LocalTurn<Grant>): Promise<Grant> {
    const { table, closed } = this.#locks;
    const { asked, claims, session, tag, parent } = this.#wanted;
    const wanted = {
      holder: session.holder.id,
      claims,
      sinceMs: Math.floor(this.#clock.wallMs()),
      ...(tag === undefined ? {} : { tag }),
      ...(parent === undefined ? {} : { within: parent.id }),
    };
    const mustGoOn = (): void => session.throwIfOver();
    const queued = await enqueue(table, wanted, { wait: this.#leftMs > 0, mustGoOn });
    if (!("request" in queued)) throw await this.#timedOut(queued.blockers);
    const { request, state, blockers } = queued;
    try {
      if (blockers.length > 0) await this.#waitInTable(request, blockers);
      await table.completeOrphans(state, (redo) => conflictsWith(claims, redo.claims));
      parent?.mustHold();
      closed.throwIfAborted();
      session.throwIfOver();
    } catch (error) {
      await table.release(request.id).catch(() => undefined);
      throw error;
    }
    const times = { sinceMs: this.#clock.wallMs(), requestedMs: this.#clock.monotonicMs() };
    return new Grant({ id: request.id, session, asked, claims, turn, fence: fenceOf(request), parent, ...times });
  }

  async #waitInTable(request: TableRequest, blockers: readonly TableRequest[]): Promise<void> {
    const { table } = this.#locks;
    const { session, parent } = this.#wanted;
    const mustGoOn = (): void => {
      session.throwIfOver();
      parent?.mustHold();
    };
    const { leaseMs } = session.holder;
    await this.#waiting(
      (deadline) => waitForBlockers(table, { request, blockers }, { deadline, mustGoOn, leaseMs }),
      async () => {
        const standing = await table.standing(blockers);
        // The last of them may have ended just when the time was up.
        return standing.length > 0 ? standing : blockers;
      },
    );
  }

  /**
   * Waits for no longer than is left. LOCK_TIMEOUT names the requests that `findBlockers` finds
   * then.
   */
  async #waiting<T>(
    wait: (deadline: Deadline) => Promise<T>,
    findBlockers: () => Promise<readonly Blocker[]>,
  ): Promise<T> {
    const { signal } = this.#wanted.wait;
    const { closed } = this.#locks;
    const timedOut = (): unknown => expired;
    const deadline = new Deadline(this.#clock, { timeoutMs: this.#leftMs, signal, closed, timedOut });
    try {
      return await wait(deadline);
    } catch (error) {
      signal?.throwIfAborted();
      throw error === expired ? await this.#timedOut(await findBlockers()) : error;
    } finally {
      deadline.cancel();
    }
  }

  get #leftMs(): number {
    return leftMsOf(this.#clock, this.#wanted.wait);
  }

  async #findConflicting(): Promise<TableRequest[]> {
    const { table } = this.#locks;
    const { state } = await table.read();
    return conflictingOf(await table.standing(state.requests), { id: "", claims: this.#wanted.claims });
  }

  async #timedOut(blockers: readonly Blocker[]): Promise<Error> {
    const { asked, wait, parent } = this.#wanted;
    // Within another hold also the requests that wait for that one may be in the way.
    const claims = [...this.#wanted.claims, ...(parent?.claims ?? [])];
    return await lockTimeout(
      this.#locks.table.ground,
      { asked, claims },
      Math.max(0, Math.round(wait.timeoutMs ?? 0)),
      blockers,
    );
  }

  get #clock() {
    return this.#locks.table.ground.ports.clock;
  }
}

/** Gives a grant to its caller. Foreign programs see it first: the caller may rely on that. */
export async function giveOut(
  locks: LocksContext,
  grant: Grant,
  { idleMs, ...wait }: AcquireWait & { readonly idleMs?: number | undefined },
): Promise<PathHold> {
  try {
    if (locks.interop !== undefined && !grant.isCovered) {
      await locks.interop.show(grant, grant.asked, wait);
      // That may have taken long, and the hold may have been broken meanwhile.
      await locks.verbs.check(locks, grant);
    }
    // The hold that it is within may have ended, and the caller may have given up: then the hold
    // would never be released.
    grant.mustHold();
    locks.closed.throwIfAborted();
    wait.signal?.throwIfAborted();
  } catch (error) {
    // The caller is told what failed first. A release that fails is repeated until it succeeds.
    await locks.verbs.release(locks, grant).catch(() => undefined);
    throw error;
  }
  const hold = new PathHoldHandle(locks, grant);
  locks.monitor.begin(grant, hold, idleMs);
  return hold;
}
